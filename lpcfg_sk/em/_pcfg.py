"""The plain treebank PCFG."""

from numbers import Real

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._validation import Interval, fit_context
from lpcfg_sk.lpcfg import coarse_pcfg
from lpcfg_sk.treebank import count_rules, weighted_trees

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
        0 the grammar is the exact maximum-likelihood estimate and knows no
        unknown word.
    decoder : {"auto", "mbr", "max-marginal", "max-rule-product", "viterbi"}, \
default="auto"
        Which tree :meth:`predict` returns; "auto" is "mbr".
    prune : float or None, default=3e-4
        Chart items whose posterior under the grammar is estimated to be smaller are
        left out, see "Pruning" in the user guide.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is parsed with ``prune`` raised to 3e-4, 3e-3 and 3e-2 in turn.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a parse, or whose coarsest
        chart does not fit `max_memory`: give it a flat tree, raise an error, or leave
        it without a tree.
    n_jobs : int, default=None
        Number of threads. Does not change a bit of the result.
    verbose : int, default=0
        How much to say during long work.

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
        **BaseLPCFG._parameter_constraints,
    }

    def __init__(
        self,
        smoothing=1.0,
        *,
        decoder="auto",
        prune=3e-4,
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Count the rules of a treebank.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees
            Binary trees over pre-terminals (see :class:`TreeBinarizer`).
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            How often each tree counts.

        Returns
        -------
        self : PCFG
        """
        return self._learn(self._count(X, sample_weight))

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
