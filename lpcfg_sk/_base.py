"""Base of the learners of L-PCFGs: parsing, scoring and sampling."""

import operator
import sys
import warnings
from numbers import Integral, Real
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import lpcfg_sk
from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, check_count
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import posterior_vectors
from lpcfg_sk.parsing import (
    ON_FAILURE,
    ChartParser,
    ParserMixin,
    chart_log_probs,
    chart_marginals,
    parse_every_row,
)
from lpcfg_sk.treebank import (
    TreebankTransformerMixin,
    unbinarize,
)

#: Names of the decoders of all parsers.
DECODERS = ("auto", "mbr", "max-marginal", "max-rule-product", "viterbi")

# The last parser of each learner, with the objects it was made of. Not an attribute of
# the learner: attributes are pickled, stored in model files, and compared.
_PARSERS = WeakKeyDictionary()


def _can_prune(coarse, grammar):
    """Whether one grammar is a plain PCFG that knows the symbols of another."""
    return (
        set(coarse.nonterminals) >= set(grammar.nonterminals)
        and set(coarse.words) >= set(grammar.words)
        and coarse.arrays.n_states.max(initial=1) == 1
        and not coarse.arrays.is_signed
    )


class BaseLPCFG(ParserMixin, TreebankTransformerMixin, BaseEstimator):
    """Base of the learners: parsing, scoring and sampling with a fitted grammar.

    A subclass implements ``fit(X, y=None, *, sample_weight=None)``, which ends in
    :meth:`_set_model`, and lists the parameters below among its own.

    Parameters
    ----------
    decoder : str, default="auto"
        Which tree :meth:`predict` returns.

        - "max-marginal": the tree of the grammar with the largest sum of marginals;
        - "mbr": the brackets with the largest sum of P(X, i, j) − λ over the
          original labels, whether or not the grammar allows their combination;
        - "max-rule-product": the tree with the largest product of rule posteriors;
        - "viterbi": the tree of the best derivation (no negative parameters);
        - "auto": "max-marginal" for grammars with negative parameters, else "mbr".
    prune : float or None, default=6e-4
        Chart items whose posterior under a plain treebank PCFG is estimated to be
        smaller are left out; the section "Pruning" of the user guide says how it is
        estimated. Probabilities and marginals are computed with ``prune * 5e-9``.
        None (or 0) for full charts, which is exact and slow.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is parsed with ``prune`` raised to 6e-4, 6e-3 and 6e-2 in turn.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a parse, or whose coarsest
        chart does not fit `max_memory`: give it a flat tree, raise
        :class:`ParseError` or :class:`ChartMemoryError` (without trying coarser
        charts), or leave it without a tree.
    n_jobs : int, default=None
        Number of threads. The result does not depend on it.
    verbose : int, default=0
        How much to report during long computations.

    Attributes
    ----------
    grammar_ : LPCFG
        The model.
    coarse_ : LPCFG
        The plain PCFG of the training trees, which prunes charts.
    binarized_ : bool
        Whether the training trees came from a :class:`TreeBinarizer`; predicted trees
        are then restored.
    """

    _parameter_constraints: dict = {
        "decoder": [StrOptions(set(DECODERS))],
        "prune": [Interval(Real, 0, 1, closed="left"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left")],
        "on_failure": [StrOptions(set(ON_FAILURE))],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    #: Whether the learner needs InsideFeatures and OutsideFeatures before it.
    _uses_features = False

    def __init__(
        self,
        *,
        decoder="auto",
        prune=6e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
    ):
        self.decoder = decoder
        self.prune = prune
        self.max_memory = max_memory
        self.on_failure = on_failure
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _set_model(self, grammar, coarse, treebank):
        """Set the attributes that were learnt from a treebank.

        Parameters
        ----------
        grammar : LPCFG
            The model.
        coarse : LPCFG
            Plain PCFG of the same trees.
        treebank : Treebank, ShardedTreebank, or object with `binarized`
            The training trees.
        """
        self.grammar_ = grammar
        self.coarse_ = coarse
        self.binarized_ = bool(treebank.binarized)

    def _say(self, text):
        """Report a step of a long computation on standard error."""
        if self.verbose:
            sys.stderr.write(f"{type(self).__name__}: {text}\n")

    # -- parsing ---------------------------------------------------------------

    def _parser(self):
        """Return the parser of the fitted grammar, made once per fit and settings."""
        check_is_fitted(self)
        grammars = (self.grammar_, self.coarse_)
        settings = self._parser_settings()
        made_of = (*grammars, *settings.values())
        known, parser = _PARSERS.get(self, ((), None))
        if parser is None or not all(map(operator.is_, made_of, known)):
            # Parameters may have been set since the fit checked them.
            self._validate_params()
            if self.coarse_ is not None and not _can_prune(self.coarse_, self.grammar_):
                raise ValueError(
                    "grammar_ and coarse_ do not belong together: coarse_ is a plain "
                    "PCFG over the same nonterminals and words; fit the learner again"
                )
            parser = ChartParser(*grammars, **settings)
            # Threads that share a learner replace the pair as a whole.
            _PARSERS[self] = made_of, parser
        return parser

    def _parser_settings(self):
        return {
            "binarized": self.binarized_,
            "decoder": self.decoder,
            "prune": self.prune,
            "max_memory": self.max_memory,
        }

    def _parse(self, X):
        X = self._check_sentences(X, sharded=True)
        parser = self._parser()
        return parse_every_row(
            X,
            parser.predict,
            coarser=parser.coarser,
            flat=parser.flat_trees,
            on_failure=self.on_failure,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    @property
    def _lenient(self):
        return self.on_failure != "raise"

    def _precise_charts(self, parser, X):
        return parser.charts(X, open_class=False, precise=True, lenient=self._lenient)

    def span_marginals(self, X, *, precise=True):
        """Posterior probabilities of brackets over the original labels.

        Binarisation is undone: labels are those of the original nodes.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        precise : bool, default=True
            Whether to lower the threshold of the pruning by the factor 5e-9. Without
            it the values are those by which :meth:`predict` chooses brackets, in about
            its time.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal, and tag,
            which is True for the tag of a word. For grammars with negative
            parameters the magnitudes of the posteriors, rescaled so that the items
            of the sentence sum to 2n − 1.

        Notes
        -----
        At the default `prune` the result is within 1e-6 of that of full charts on the
        dev trees of WSJ; see "Pruning" in the user guide. ``prune=None`` is exact.

        A word that the grammar does not know is treated as an open-class word, as in
        :meth:`predict`, whereas :meth:`marginals` and :meth:`sentence_log_prob` give
        its sentence no tree.
        """
        X = self._check_sentences(X)
        return self._parser().span_marginals(
            X, lenient=self._lenient, precise=precise, n_jobs=self.n_jobs
        )

    def marginals(self, X, *, normalize=False):
        """Marginals μ(a, i, j) of the nonterminals of the grammar.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        normalize : bool, default=False
            Whether to divide by the probability of the sentence, which makes them
            posterior probabilities. The undivided ones underflow for long sentences.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal. Items with
            a posterior below ``prune * 5e-9`` under the plain PCFG are not listed.

        See Also
        --------
        span_marginals : Says how exact they are, and what unknown words mean.
        """
        X = self._check_sentences(X)
        charts = self._precise_charts(self._parser(), X)
        return chart_marginals(charts, normalize=normalize, n_jobs=self.n_jobs)

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
            For each sentence its trees, the best first, each with its score: the log
            probability of the tree for a plain PCFG; for grammars with latent states,
            whose k best trees cannot be found in polynomial time, the sum of the log
            posteriors of the tree's rules (the objective of "max-rule-product").

        Notes
        -----
        A word that the grammar does not know is treated as in :meth:`span_marginals`.
        The score then holds the weight of the open classes where the probability of the
        word would be.
        """
        k = check_count("k", k, 1)
        X = self._check_sentences(X)
        return self._parser().parse_kbest(
            X, k, lenient=self._lenient, n_jobs=self.n_jobs
        )

    # -- probabilities -----------------------------------------------------------

    def score_samples(self, X):
        """Log probability of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees, as in training.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_trees,)
            Natural logarithm; -inf where the value is zero or negative.
        """
        X = self._check_trees(X)
        return self.grammar_.log_prob(X, n_jobs=self.n_jobs)

    def sentence_log_prob(self, X):
        """Log probability of each sentence, the sum over its trees.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_sentences,)
            Natural logarithm of the sum over the trees; -inf where there is none or
            the sum is not positive.

        See Also
        --------
        span_marginals : Says what pruning and unknown words mean here.
        """
        X = self._check_sentences(X)
        charts = self._precise_charts(self._parser(), X)
        return chart_log_probs(charts, n_jobs=self.n_jobs)

    def mixture_log_prob(self, X, *, weight=0.01, method="score_samples"):
        """Log probability under a mixture with the plain PCFG of the training trees.

        With f the value that the grammar gives to a tree (or to a sentence) and p its
        probability under ``coarse_``, this is log((1 − w) max(f, 0) + w p), where w is
        `weight`. A value that is not positive, as spectral estimates have, thus counts
        as zero, and the result is finite wherever the plain PCFG has a tree. Values of
        a spectral grammar need not sum to one over all trees; neither do these.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Binary trees, as in training; sentences will do for "sentence_log_prob".
        weight : float, default=0.01
            Weight w of the plain PCFG, between 0 and 1.
        method : {"score_samples", "sentence_log_prob"}, default="score_samples"
            Whether to score trees or sentences.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_rows,)
            Natural logarithm; -inf where the plain PCFG has no tree.

        See Also
        --------
        lpcfg_sk.metrics.log_likelihood_scorer : Its mean, to choose hyperparameters.
        """
        if not isinstance(weight, Real) or not 0 < weight < 1:
            raise ValueError(f"weight must be a number between 0 and 1, got {weight!r}")
        if method == "score_samples":
            X = self._check_trees(X)
            plain = self.coarse_.log_prob(X, n_jobs=self.n_jobs)
        elif method == "sentence_log_prob":
            X = self._check_sentences(X)
            parser = ChartParser(self.coarse_, self.coarse_, **self._parser_settings())
            charts = self._precise_charts(parser, X)
            plain = chart_log_probs(charts, n_jobs=self.n_jobs)
        else:
            raise ValueError(
                f'method must be "score_samples" or "sentence_log_prob", got {method!r}'
            )
        with warnings.catch_warnings():
            # The mixture takes care of values that are not positive.
            warnings.simplefilter("ignore", ParseFailureWarning)
            own = getattr(self, method)(X)
        mixed = np.logaddexp(np.log1p(-weight) + own, np.log(weight) + plain)
        return np.where(np.isneginf(plain), -np.inf, mixed)

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
            Trees, not binarised.
        """
        check_is_fitted(self)
        trees = self.grammar_.sample(n, random_state)
        return unbinarize(trees) if self.binarized_ else trees

    def transform(self, X):
        """Put the posterior probabilities of the latent states into the treebank.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees, as in training.

        Returns
        -------
        treebank : Treebank
            `X` with the block ``"vectors"``, one row per node.
        """
        X = self._check_trees(X)
        vectors = posterior_vectors(self.grammar_, X, n_jobs=self.n_jobs)
        return X.replace(
            blocks={**X.blocks, "vectors": vectors},
            block_names={**X.block_names, "vectors": None},
        )

    # -- scikit-learn conventions ------------------------------------------------

    def __sklearn_is_fitted__(self):
        return hasattr(self, "grammar_")

    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "_lpcfg_sk_version": lpcfg_sk.__version__}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_lpcfg_sk_version", None)
        if version != lpcfg_sk.__version__:
            warnings.warn(
                f"{type(self).__name__} was pickled by lpcfg_sk {version}, this is "
                f"{lpcfg_sk.__version__}; results may differ",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)
