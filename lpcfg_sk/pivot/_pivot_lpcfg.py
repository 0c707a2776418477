"""Learning by pivots: latent states of nodes, counts of rules, grammar."""

import sys
from numbers import Integral, Real

import numpy as np

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._parallel import Spool
from lpcfg_sk._validation import N_STATES, Interval, StrOptions, fit_context
from lpcfg_sk.lpcfg import (
    Layout,
    coarse_pcfg,
    grammar_of_parameters,
    maximize,
    requested_states,
)
from lpcfg_sk.pivot._node_states import PivotOptions, latent_rule_counts, node_states
from lpcfg_sk.spectral import SIDES, NodeFeatures, decompose
from lpcfg_sk.treebank import RuleIndex, count_rules, over_chunks, weighted_trees


class PivotLPCFG(BaseLPCFG):
    r"""Latent-variable PCFG learnt from pivot features, with provable guarantees.

    Each latent state of a nonterminal is assumed to have a pivot: a feature of inside
    trees, and one of outside trees, that occurs with this state only.  Pivots are the
    corners of a convex hull that can be found, and every other feature is a mixture of
    them; then the rules follow from a concave maximisation.  There are no local optima,
    and unlike the spectral method this one estimates probabilities: the grammar can be
    sampled from, its states have names (``pivots_``), and it is an excellent start
    for EM, ``EMLPCFG(init=PivotLPCFG(m=16))``.

    Parameters
    ----------
    m : int, dict or callable, default=8
        Number of latent states of each nonterminal: one number, a mapping of
        nonterminals to numbers (1 for those not named), or
        ``m(nonterminal, count) -> int``.  It is cut to the numerical rank of the
        features' co-occurrence; a nonterminal that occurs only at roots has one state.
    scaling : float, default=5.0
        Feature i is multiplied by √(M / (count_i + scaling)) before the singular
        value decomposition (a smoothed CCA).
    anchor_min_count : float, default=20.0
        Least number of nodes that have a feature if it is to be a pivot; lowered for
        nonterminals with fewer than two such features per state.
    prior : float, default=5.0
        Number of nodes by which the posterior p(h | f) of each feature is drawn
        towards p(h).
    tempering : float, default=0.5
        A node with K features contributes the product of their likelihoods to the power
        :math:`K^{-tempering}`: 0 takes the features as independent given the
        state, 1 takes their geometric mean.  Without effect for one feature.
    max_iter : int, default=3
        Most iterations of the concave maximisation of each rule.  A few are best for
        real data, where convergence means overfitting.
    tol : float, default=1e-6
        It ends earlier when more iterations could add no more to the mean log
        likelihood of a rule's nodes.
    matching_max_iter : int, default=20
        Most iterations that match the states found from inside features with
        those found from outside features.
    solver : {"pairwise", "frank-wolfe"}, default="pairwise"
        Simplex-constrained least squares, see
        :func:`~lpcfg_sk.pivot.simplex_least_squares`.
    smoothing : float, default=0.05
        Part of each rule's probability that is shared between states: its counts are
        mixed with the product of their marginals.
    lexicon_alpha : float, default=1.0
        Strength, in tokens, of the mix of each word with its signature class.  0 turns
        it off; unknown words are then impossible.
    decoder : str, default="auto"
        Which tree :meth:`predict` returns: "mbr", "max-marginal", "max-rule-product" or
        "viterbi"; "auto" is "mbr".
    prune : float or None, default=3e-4
        Chart items whose posterior under ``coarse_`` is estimated to be smaller are
        left out, see "Pruning" in the user guide.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        Number of threads.  Does not change a bit of the result.
    verbose : int, default=0
        Whether to report the two steps (on standard error).

    Attributes
    ----------
    grammar_ : LPCFG
        The grammar; its parameters are probabilities.
    coarse_ : LPCFG
        The plain PCFG of the training trees, which prunes charts.
    m_ : dict of str to int
        Number of states of each nonterminal.
    pivots_ : dict of str to list of str
        The inside feature that is the pivot of each state; empty for nonterminals with
        one state.
    n_iter_ : int
        Largest number of iterations of a rule.
    converged_ : bool
        Whether all rules ended by `tol`; they need not.
    counts_ : dict of str to float
        Number of nodes of each nonterminal in training.

    See Also
    --------
    EMLPCFG : Goes on from here.
    pivot_decomposition : The decomposition of one matrix.

    Notes
    -----
    Figure 1 of [1]_.  Step 1 is done for all features together (section 6.2): features
    of all templates lie in the same hull.  Step 2 maximises

    .. math:: \sum_n \log \sum_{h_1,h_2,h_3} t(h_1,h_2,h_3 | a \to b\,c)\,
              \hat s(o_n | h_1, a)\, \hat r(t_n | h_2, b)\, \hat r(t'_n | h_3, c)

    over the nodes n of a rule, where the likelihood of an inside or outside tree is
    the tempered product over its features.  The paper instead adds up the objective
    over all combinations of one feature of each kind; for one feature they are the
    same, and exact moments then give the exact grammar (with ``scaling=0, prior=0,
    smoothing=0, lexicon_alpha=0, anchor_min_count=0``, a small `tol` and enough
    iterations of both kinds).  Exact moments are those of all trees of a grammar with
    their probabilities as `sample_weight`.  Lexical and root parameters (section 6.1)
    are sums of p(h | inside tree, outside tree).

    References
    ----------
    .. [1] S. B. Cohen and M. Collins (2014). A provably correct learning algorithm for
       latent-variable PCFGs. ACL.

    Examples
    --------
    >>> from lpcfg_sk import PivotLPCFG, Treebank, make_parser
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (VP (V saw) (NP her)))",
    ...                   "(S (NP she) (VP (V ran)))"] * 4)
    >>> parser = make_parser(PivotLPCFG(m=2)).fit(trees)
    >>> str(parser.predict([["the", "dog", "saw", "she"]])[0])
    '(S (NP (D the) (N dog)) (VP (V saw) (NP she)))'
    """

    _parameter_constraints: dict = {
        "m": N_STATES,
        "scaling": [Interval(Real, 0, None, closed="left")],
        "anchor_min_count": [Interval(Real, 0, None, closed="left")],
        "prior": [Interval(Real, 0, None, closed="left")],
        "tempering": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "matching_max_iter": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"pairwise", "frank-wolfe"})],
        "smoothing": [Interval(Real, 0, 1, closed="both")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        **BaseLPCFG._parameter_constraints,
    }

    _uses_features = True

    def __init__(
        self,
        m=8,
        *,
        scaling=5.0,
        anchor_min_count=20.0,
        prior=5.0,
        tempering=0.5,
        max_iter=3,
        tol=1e-6,
        matching_max_iter=20,
        solver="pairwise",
        smoothing=0.05,
        lexicon_alpha=1.0,
        decoder="auto",
        prune=3e-4,
        max_memory=2**31,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            decoder=decoder,
            prune=prune,
            max_memory=max_memory,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.m = m
        self.scaling = scaling
        self.anchor_min_count = anchor_min_count
        self.prior = prior
        self.tempering = tempering
        self.max_iter = max_iter
        self.tol = tol
        self.matching_max_iter = matching_max_iter
        self.solver = solver
        self.smoothing = smoothing
        self.lexicon_alpha = lexicon_alpha

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn a grammar from trees with features.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Binary trees that carry the blocks of :class:`InsideFeatures` and
            :class:`OutsideFeatures`. Of shards, memory holds the rules at all nodes;
            features and likelihoods of states go to temporary files.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            Weights of the trees.

        Returns
        -------
        self : object
        """
        X, weight = weighted_trees(X, sample_weight, self, blocks=SIDES)
        rules = count_rules(X, weight, estimator=self, n_jobs=self.n_jobs)
        # What a corpus of several chunks leaves for later steps goes to files.
        with Spool(on_disk=len(X.chunk_offsets) > 2) as spool:
            nodes = NodeFeatures.from_corpus(
                X, (weight,), rules, spool, estimator=self, n_jobs=self.n_jobs
            )
            index = _corpus_index(X, rules, n_jobs=self.n_jobs)
            states = self._find_states(nodes, index)
            self._say(
                f"{states.n_states.sum()} states of {len(states.n_states)} nonterminals"
            )
            layout = Layout.build(rules, states.n_states)
            counts, self.n_iter_, self.converged_ = latent_rule_counts(
                index,
                layout,
                states,
                index.node_weight(weight),
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
            )
        self._say(f"{rules.n_rules} rules, {self.n_iter_} iterations")
        alpha = self.lexicon_alpha
        totals = maximize(rules, layout, counts, smoothing=self.smoothing)
        grammar = grammar_of_parameters(rules, layout, counts, totals, alpha=alpha)
        self._set_model(grammar, coarse_pcfg(rules, alpha=alpha), rules)
        names = next(iter(X.chunks())).block_names["inside"]
        self.pivots_ = {
            a: [str(i) if names is None else names[i] for i in pivots.tolist()]
            for a, pivots in zip(rules.nonterminals, states.anchors, strict=True)
        }
        self.m_ = grammar.m
        label_count = rules.label_count.tolist()
        self.counts_ = dict(zip(rules.nonterminals, label_count, strict=True))
        return self

    def _say(self, text):
        if self.verbose:
            sys.stderr.write(f"PivotLPCFG: {text}\n")

    def _find_states(self, nodes, index):
        """Step 1: projections by CCA, and the states that they show."""
        m = requested_states(self.m, index.nonterminals, nodes.label_count)
        m = np.where(index.occurs_below, m, 1)
        projections = decompose(nodes, m, scaling=self.scaling, n_jobs=self.n_jobs)
        m = np.array(
            [_rank(p.singular_values, k) for p, k in zip(projections, m, strict=True)]
        )
        options = PivotOptions(
            anchor_min_count=self.anchor_min_count,
            prior=self.prior,
            tempering=self.tempering,
            solver=self.solver,
            matching_max_iter=self.matching_max_iter,
            tol=self.tol,
        )
        return node_states(
            nodes, index.label, projections, m, options, n_jobs=self.n_jobs
        )


def _corpus_index(X, rules, *, n_jobs):
    """Return the rules at all nodes of a corpus."""

    def find(treebank):
        return RuleIndex.from_treebank(treebank, table=rules)

    indices = list(over_chunks(find, X.without_blocks(), n_jobs=n_jobs))
    return indices[0] if len(indices) == 1 else RuleIndex.concatenate(indices)


def _rank(singular_values, m):
    """Number of singular values, of the first m, that are not rounding errors."""
    largest = singular_values.max(initial=0.0)
    return max(1, int(np.sum(singular_values[:m] > 1e-6 * largest)))
