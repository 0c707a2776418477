"""The plain treebank PCFG."""

from numbers import Integral, Real

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._validation import Interval, fit_context
from lpcfg_sk.em._expectation import count_sentences, warn_of_failures
from lpcfg_sk.lpcfg import coarse_pcfg
from lpcfg_sk.treebank import count_rules, trees_and_sentences, weighted_trees

__all__ = ["PCFG"]


class PCFG(BaseLPCFG):
    """Treebank grammar: relative frequencies of rules.

    The maximum-likelihood PCFG of the training trees, with a lexicon that is
    smoothed by the signature classes of words. It has no latent states (m = 1).

    Parameters
    ----------
    smoothing : float, default=1.0
        Strength of the lexicon's smoothing, in tokens: the tags of a word seen
        c times are mixed, c : smoothing, with those of its signature class. With
        0 the grammar is the exact maximum-likelihood estimate, and unknown words
        are impossible.
    unlabeled_weight : float, default=0.5
        Weight w of a sentence without a tree. The counts of rules are c(trees) + w
        E[c(sentences)], where the expectation is over the trees of the sentences under
        the grammar of the last iteration. 0 leaves sentences out.
    n_unlabeled_iter : int, default=2
        Number of iterations with sentences, after a first grammar from trees alone.
    decoder : {"auto", "mbr", "max-marginal", "max-rule-product", "viterbi"}, \
default="auto"
        Which tree :meth:`predict` returns; "auto" is "mbr".
    prune : float or None, default=6e-4
        Chart items whose posterior under the grammar is estimated to be smaller are
        left out, see "Pruning" in the user guide.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is parsed with ``prune`` raised to 6e-4, 6e-3 and 6e-2 in turn.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a parse, or whose coarsest
        chart does not fit `max_memory`: give it a flat tree, raise an error, or leave
        it without a tree.
    n_jobs : int, default=None
        Number of threads. The result does not depend on it.
    verbose : int, default=0
        How much to report during long computations.

    Attributes
    ----------
    grammar_ : LPCFG
        The model, with one state per nonterminal.
    coarse_ : LPCFG
        The same grammar, which prunes charts.
    m_ : dict of str to int
        Number of latent states, 1 for each nonterminal.
    counts_ : RuleInventory
        The rules and how often they occur; :meth:`partial_fit` adds to them.
    n_failed_ : int
        Sentences that had no parse in the last iteration, and did not count.

    See Also
    --------
    EMLPCFG : Latent states learnt by expectation maximisation.

    Notes
    -----
    The probability of a rule is :math:`c(a → b c) / c(a)`; see
    :func:`lpcfg_sk.lpcfg.smooth_lexicon` for words.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, Treebank
    >>> trees = Treebank(["(S (NP dogs) (VP bark))", "(S (NP cats) (VP sleep))"])
    >>> pcfg = PCFG().fit(trees)
    >>> str(pcfg.predict([["cats", "bark"]])[0])
    '(S (NP cats) (VP bark))'
    """

    _parameter_constraints: dict = {
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
        "n_unlabeled_iter": [Interval(Integral, 0, None, closed="left")],
        **BaseLPCFG._parameter_constraints,
    }

    def __init__(
        self,
        smoothing=1.0,
        *,
        unlabeled_weight=0.5,
        n_unlabeled_iter=2,
        decoder="auto",
        prune=6e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            decoder=decoder,
            prune=prune,
            max_memory=max_memory,
            on_failure=on_failure,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.smoothing = smoothing
        self.unlabeled_weight = unlabeled_weight
        self.n_unlabeled_iter = n_unlabeled_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Count the rules of a treebank.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees and sentences
            Binary trees over pre-terminals (see :class:`TreeBinarizer`), and rows
            without trees, of which expected counts are taken.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        self : PCFG
        """
        X, weight, sentences, sentence_weight = trees_and_sentences(
            X, sample_weight, self
        )
        trees = count_rules(X, weight, estimator=self, n_jobs=self.n_jobs)
        self._learn(trees)
        scale = self.unlabeled_weight
        self.n_failed_ = 0
        for _ in range(self.n_unlabeled_iter if scale and len(sentences) else 0):
            expected = count_sentences(
                self._parser(), sentences, sentence_weight, n_jobs=self.n_jobs
            )
            self.n_failed_ = expected.n_failed
            binarized = trees.binarized
            own = expected.rule_counts(self.grammar_, scale, binarized=binarized)
            self._learn(trees + own)
        warn_of_failures(self, len(sentences))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, *, sample_weight=None):
        """Count the rules of more trees.

        The grammar is then that of all trees so far, as if they had been fitted
        together.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees
            Binary trees over pre-terminals, by the same transformers each time.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        self : PCFG

        Examples
        --------
        >>> from lpcfg_sk import PCFG, Treebank
        >>> pcfg = PCFG().partial_fit(Treebank(["(S (NP dogs) (VP bark))"]))
        >>> pcfg = pcfg.partial_fit(Treebank(["(S (NP cats) (VP sleep))"]))
        >>> str(pcfg.predict([["cats", "bark"]])[0])
        '(S (NP cats) (VP bark))'
        """
        counts = self._count(X, sample_weight)
        if hasattr(self, "counts_"):
            counts = self.counts_ + counts
        return self._learn(counts)

    def _count(self, X, sample_weight):
        X, weight = weighted_trees(X, sample_weight, self)
        return count_rules(X, weight, estimator=self, n_jobs=self.n_jobs)

    def _learn(self, counts):
        grammar = coarse_pcfg(counts, alpha=self.smoothing)
        self.counts_ = counts
        self.m_ = grammar.m
        self._set_model(grammar, grammar, counts)
        return self
