"""The parser for users: a pipeline over raw sentences and trees."""

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.treebank import Treebank


def _learner_has(name):
    def check(parser):
        # This raises an AttributeError that names the learner.
        getattr(parser._final_estimator, name)
        return True

    return available_if(check)


class Parser(Pipeline):
    """A pipeline from trees to a parser.

    :func:`~lpcfg_sk.make_parser` makes one. It is a
    :class:`~sklearn.pipeline.Pipeline` whose last step is a learner, and it has the
    learner's methods. They take raw sentences or trees, which go through the
    preprocessing first. The parser has only the methods that its learner has.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers of treebanks, and the learner.
    transform_input : list of str, default=None
        See :class:`~sklearn.pipeline.Pipeline`.
    memory : str or joblib.Memory, default=None
        Cache of the fitted preprocessing steps.
    verbose : bool, default=False
        Whether to report how long each step takes.

    Attributes
    ----------
    parse_report_ : DataFrame
        Outcome for each row of the last :meth:`predict`: columns status and reason.
        It is not part of the model, so copies and files do not have it.

    See Also
    --------
    lpcfg_sk.make_parser : A learner behind the standard preprocessing.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> parser = make_parser(PCFG()).fit(load_toy(300))
    >>> print(parser.predict(["he worked again ."])[0])
    (S (NP (PRP he)) (VP (VBD worked) (ADVP (RB again))) (. .))
    >>> trees, status = parser.predict(["he worked again .", ""], return_status=True)
    >>> status["status"].tolist()
    ['parsed', 'empty']
    >>> [len(parses) for parses in parser.parse_kbest(["he worked again ."], k=2)]
    [2]
    """

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_report", None)
        return state

    @property
    def parse_report_(self):
        """Outcome for each row of the last :meth:`predict`."""
        if not hasattr(self, "_report"):
            raise AttributeError(
                "parse_report_ says what became of the rows of the last predict, and "
                "there was none"
            )
        # Made on demand: the table costs as much as parsing a short sentence.
        return self._report.frame()

    def _seen(self, X, *, words_only=True):
        """Return X as the learner sees it, by default without its trees."""
        if words_only and isinstance(X, Treebank) and not X.binarized:
            X = X.unparsed()
        # A loop, because self[:-1] would make a new pipeline in each call.
        try:
            for _, _, step in self._iter(with_final=False):
                X = step.transform(X)
        except NotFittedError:
            # The error should name the whole parser rather than its first step.
            check_is_fitted(self)
            raise
        return X

    @_learner_has("predict")
    def predict(self, X, *, return_status=False, **params):
        """Parse sentences.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Only the words are parsed.
        return_status : bool, default=False
            Whether to return the status of each row as well.
        **params
            Further arguments of the learner's ``predict``.

        Returns
        -------
        trees : Treebank
            One tree per row over the original tokens, see ``predict`` of the learner.
        status : DataFrame, only if `return_status`
            The same as ``parse_report_``.
        """
        learner = self._final_estimator
        if params or not hasattr(learner, "_parse"):
            return super().predict(X, **params)
        # Pipeline.predict would need a metadata request for return_status.
        trees, self._report = learner._parse(self._seen(X))
        if return_status:
            return trees, self.parse_report_
        self._report.warn()
        return trees

    @_learner_has("parse_kbest")
    def parse_kbest(self, X, k=10):
        """Best k trees of each sentence.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        k : int, default=10
            Number of trees; a sentence with fewer derivations has fewer.

        Returns
        -------
        parses : list of list of (Tree, float)
            For each sentence its trees, the best first, each with its score; see
            ``parse_kbest`` of the learner.
        """
        return self._final_estimator.parse_kbest(self._seen(X), k)

    @_learner_has("marginals")
    def marginals(self, X, *, normalize=False):
        """Marginals μ(a, i, j) of the nonterminals of the grammar.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        normalize : bool, default=False
            Whether to divide by the probability of the sentence.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal. Labels are
            those of the binarised trees.
        """
        return self._final_estimator.marginals(self._seen(X), normalize=normalize)

    @_learner_has("span_marginals")
    def span_marginals(self, X, *, precise=True):
        """Posterior probabilities of brackets over the original labels.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        precise : bool, default=True
            Whether to prune less than :meth:`predict` does, see ``span_marginals`` of
            the learner.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal and tag.
        """
        return self._final_estimator.span_marginals(self._seen(X), precise=precise)

    @_learner_has("sentence_log_prob")
    def sentence_log_prob(self, X):
        """Log probability of each sentence, the sum over its trees.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_sentences,)
            Natural logarithm; -inf for a sentence without a tree.
        """
        return self._final_estimator.sentence_log_prob(self._seen(X))

    @_learner_has("mixture_log_prob")
    def mixture_log_prob(self, X, *, weight=0.01, method="score_samples"):
        """Log probability under a mixture with the plain PCFG of the training trees.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Trees; sentences will do for "sentence_log_prob".
        weight : float, default=0.01
            Weight of the plain PCFG.
        method : {"score_samples", "sentence_log_prob"}, default="score_samples"
            Whether to score trees or sentences.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_rows,)
        """
        X = self._seen(X, words_only=method == "sentence_log_prob")
        return self._final_estimator.mixture_log_prob(X, weight=weight, method=method)

    @_learner_has("sample")
    def sample(self, n=1, random_state=None):
        """Draw trees from the grammar.

        Parameters
        ----------
        n : int, default=1
            Number of trees.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        trees : Treebank
            Trees, not binarised. Rare words are replaced by their classes.
        """
        return self._final_estimator.sample(n, random_state)

    @_learner_has("partial_fit")
    def partial_fit(self, X, y=None, **params):
        """Continue learning from more trees; the preprocessing is not fitted again.

        Parameters
        ----------
        X : Treebank or iterable of trees
            More training data.
        y : None
            Ignored.
        **params
            Further arguments of the learner's ``partial_fit``.

        Returns
        -------
        self : Parser
        """
        self._final_estimator.partial_fit(self._seen(X, words_only=False), y, **params)
        return self

    def to_nltk_parser(self):
        """Return the fitted parser with the interface of NLTK's parsers.

        Returns
        -------
        parser : nltk.parse.api.ParserI
            ``parse(tokens)`` yields the tree as an ``nltk.Tree``, ``parse(tokens, k)``
            the best k; ``parse_one``, ``parse_all`` and ``parse_sents`` follow. As with
            other parsers of NLTK, a sentence without a parse has no tree.

        Raises
        ------
        ImportError
            If nltk is not installed.

        Examples
        --------
        >>> from lpcfg_sk import make_parser
        >>> from lpcfg_sk.datasets import load_toy
        >>> parser = make_parser().fit(load_toy(300)).to_nltk_parser()
        >>> print(parser.parse_one(["he", "worked", "again", "."]))
        (S (NP (PRP he)) (VP (VBD worked) (ADVP (RB again))) (. .))
        """
        check_is_fitted(self)
        return _nltk_parser(self)


def _nltk_parser(parser):
    """Wrap a fitted parser as an ``nltk.parse.api.ParserI``."""
    try:
        from nltk.parse.api import ParserI
    except ImportError:
        raise ImportError(
            "to_nltk_parser needs nltk: pip install nltk (or lpcfg_sk[nltk])"
        ) from None

    class NltkParser(ParserI):
        """Trees of lpcfg_sk for NLTK, the best first."""

        def __repr__(self):
            return f"<NLTK parser of {parser[-1]}>"

        def grammar(self):
            """Raise an error: NLTK's grammars have no latent states."""
            raise NotImplementedError(
                "a grammar of lpcfg_sk is not one of NLTK; it is grammar_ of the "
                "learner, parser[-1]"
            )

        def parse_sents(self, sents, k=1):
            """Yield an iterator over the best k trees of each sentence.

            A sentence without a parse has none.
            """
            if k > 1:
                for parses in parser.parse_kbest(sents, k):
                    yield (tree.to_nltk() for tree, _ in parses)
                return
            trees, status = parser.predict(sents, return_status=True)
            found = status["status"].isin(["parsed", "coarser"])
            for tree, has_parse in zip(trees, found, strict=True):
                yield iter([tree.to_nltk()] if has_parse else [])

        def parse(self, sent, k=1):
            """Return an iterator over the best k trees of a sentence."""
            return next(self.parse_sents([sent], k))

    return NltkParser()
