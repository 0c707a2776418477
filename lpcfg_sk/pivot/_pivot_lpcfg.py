"""Learning by pivots: latent states of nodes, counts of rules, grammar."""

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._files import LeftOutMixin
from lpcfg_sk._parallel import Spool
from lpcfg_sk._validation import N_STATES, Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.lpcfg import (
    Layout,
    coarse_pcfg,
    grammar_of_parameters,
    maximize,
    requested_states,
)
from lpcfg_sk.pivot._label_states import PivotOptions
from lpcfg_sk.pivot._node_states import latent_rule_counts, node_states
from lpcfg_sk.spectral import SIDES, NodeFeatures, decompose
from lpcfg_sk.treebank import RuleIndex, count_rules, over_chunks, weighted_trees

# Iterations that are best for real data, where convergence means overfitting.
_MAX_ITER = {"sum": 10, "product": 3}
# States whose features differ less than this are copies of each other.
_COLLAPSED = 1e-8
# Nonterminals with less than this many times the nodes that pivots need get no warning:
# their states often collapse.
_NODES_PER_PIVOT = 5


class PivotLPCFG(LeftOutMixin, BaseLPCFG):
    r"""Latent-variable PCFG learnt from pivot features.

    Each latent state of a nonterminal is assumed to have a pivot: a feature of inside
    trees, and one of outside trees, that occurs with this state only.  Pivots are the
    corners of a convex hull that can be found, and every other feature is a mixture of
    them; then the rules follow from a concave maximisation.  There are no local optima;
    with ``objective="sum"``, the paper's own, the estimates are consistent: they
    converge to the true grammar if its states have pivots (theorem 1).  Unlike
    the spectral method this one estimates probabilities: the grammar can be
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
    objective : {"product", "sum"}, default="product"
        How the features of a node make up the likelihood of its inside or outside tree
        in the concave maximisation. "sum" adds up the log likelihoods of all
        combinations of one feature of each kind (section 6.2 of the paper) and takes
        the parameters of words and roots from the decomposition (section 6.1); it
        keeps the paper's guarantee for any number of features. "product" multiplies the
        features' likelihoods, see `tempering`; it keeps the guarantee for one
        inside and one outside feature only. They are about equally accurate on
        treebanks, and "product" is more than twice as fast.
    tempering : float, default=0.5
        For ``objective="product"``: a node with K features contributes the product of
        their likelihoods to the power :math:`K^{-tempering}`: 0 takes the features as
        independent given the state, 1 takes their geometric mean.  It has no effect
        on a single feature.
    max_iter : int or "auto", default="auto"
        Most iterations of the concave maximisation of each rule.  A few are best for
        real data, where convergence means overfitting: "auto" is 3 for the product and
        10 for the sum.
    tol : float, default=1e-6
        The maximisation ends earlier when more iterations could raise the mean log
        likelihood of a rule's nodes by at most this.
    matching_max_iter : int, default=20
        Most iterations that match the states found from inside features with
        those found from outside features.
    solver : {"pairwise", "frank-wolfe"}, default="pairwise"
        Simplex-constrained least squares, see
        :func:`~lpcfg_sk.pivot.simplex_least_squares`.
    solver_tol, solver_max_iter : float and int, default=1e-8 and 100
        Its stopping rule for each feature. Exact moments deserve a smaller tolerance
        and more steps, real data do not.
    smoothing : float, default=0.05
        Part of each rule's probability that is shared between states, larger for rare
        rules: a rule's counts are mixed with the product of their marginals.
    lexicon_alpha : float, default=1.0
        Strength, in tokens, of the mix of each word with its signature class.  0 turns
        it off; unknown words are then impossible.
    decoder : str, default="auto"
        Which tree :meth:`predict` returns: "mbr", "max-marginal", "max-rule-product" or
        "viterbi"; "auto" is "mbr".
    prune : float or None, default=6e-4
        Chart items whose posterior under ``coarse_`` is estimated to be smaller are
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
    outside_pivots_ : dict of str to list of str
        The outside feature that is the pivot of each state: the one that is found
        with most of the state's nodes, if states of the two sides are not matched
        one to one.
    state_probabilities_ : dict of str to ndarray of shape (m,)
        p(h | a).
    r_ : dict of str to CSR matrix of shape (m, n_inside_features)
        r̂(f | h, a), the probability that the inside tree of a node has feature f, a
        column of the block "inside". A row sums to the number of templates.
    s_ : dict of str to CSR matrix of shape (m, n_outside_features)
        ŝ(g | h, a), the same for outside trees. Compact model files leave both out.
    alpha_, beta_ : dict of str to float
        How frequent pivots are (assumption 1): the least probability, over the states,
        of a state's most frequent pivot; among inside features, and among outside
        features before their states are matched with those of the inside.
    concavity_ : dict of str to float
        How well features tell the states apart (assumption 2), from 0 to 1: the least
        information that features carry about the weights of the states, relative to
        observed states; the smaller value of r̂ and ŝ. If it is 0, eq. 1 has several
        maxima for rules with this nonterminal.
    n_iter_ : int
        Largest number of iterations of a rule.
    converged_ : bool
        Whether all rules ended by `tol`, which is not required.
    counts_ : dict of str to float
        Number of nodes of each nonterminal in training.

    See Also
    --------
    EMLPCFG : Can start from this grammar.
    pivot_decomposition : The decomposition of one matrix.

    Notes
    -----
    Figure 1 of [1]_.  Step 1 is done for all features together (section 6.2): features
    of all templates lie in the same hull.  Step 2 maximises, for
    ``objective="sum"``,

    .. math:: \sum_n \sum_{i,j,k} \log \sum_{h_1,h_2,h_3} t(h_1,h_2,h_3 | a \to b\,c)\,
              \hat s(g^i_n | h_1, a)\, \hat r(f^j_n | h_2, b)\, \hat r(f'^k_n | h_3, c)

    over the nodes n of a rule and all combinations of an outside feature :math:`g^i_n`
    with one feature of each child.  Templates may be silent for some trees, or give
    several features: the weights of combinations are then divided by the expected
    number of combinations in each state.  For ``objective="product"`` it maximises

    .. math:: \sum_n \log \sum_{h_1,h_2,h_3} t(h_1,h_2,h_3 | a \to b\,c)\,
              \hat s(o_n | h_1, a)\, \hat r(t_n | h_2, b)\, \hat r(t'_n | h_3, c)

    where the likelihood of an inside or outside tree is the tempered product over its
    features; lexical and root parameters are sums of p(h | inside tree, outside tree).

    Exact moments give the exact grammar, for the sum always, for the product with one
    feature per side: those of all trees of a grammar with their probabilities as
    `sample_weight`, with ``scaling=0, prior=0, smoothing=0, lexicon_alpha=0,
    anchor_min_count=0``, small `tol` and `solver_tol`, and enough iterations of all
    kinds.  Theorem 1 assumes this limit, pivots (``alpha_``, ``beta_``) and strict
    concavity (``concavity_``); a warning names nonterminals whose states are all alike
    though they have ``5 * anchor_min_count`` nodes per state or more.

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
        "objective": [StrOptions({"sum", "product"})],
        "tempering": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "matching_max_iter": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"pairwise", "frank-wolfe"})],
        "solver_tol": [Interval(Real, 0, None, closed="left")],
        "solver_max_iter": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, 1, closed="both")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        **BaseLPCFG._parameter_constraints,
    }

    _uses_features = True
    _left_out = ("r_", "s_")

    def __init__(
        self,
        m=8,
        *,
        scaling=5.0,
        anchor_min_count=20.0,
        prior=5.0,
        objective="product",
        tempering=0.5,
        max_iter="auto",
        tol=1e-6,
        matching_max_iter=20,
        solver="pairwise",
        solver_tol=1e-8,
        solver_max_iter=100,
        smoothing=0.05,
        lexicon_alpha=1.0,
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
        self.m = m
        self.scaling = scaling
        self.anchor_min_count = anchor_min_count
        self.prior = prior
        self.objective = objective
        self.tempering = tempering
        self.max_iter = max_iter
        self.tol = tol
        self.matching_max_iter = matching_max_iter
        self.solver = solver
        self.solver_tol = solver_tol
        self.solver_max_iter = solver_max_iter
        self.smoothing = smoothing
        self.lexicon_alpha = lexicon_alpha

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn a grammar from trees with features.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Binary trees that carry the blocks of :class:`InsideFeatures` and
            :class:`OutsideFeatures`. For shards, memory holds the rules at all nodes;
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
        max_iter = self.max_iter
        if max_iter == "auto":
            max_iter = _MAX_ITER[self.objective]
        # With several chunks, what later steps need is kept in files.
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
                objective=self.objective,
                tol=self.tol,
                max_iter=max_iter,
                n_jobs=self.n_jobs,
            )
        self._say(f"{rules.n_rules} rules, {self.n_iter_} iterations")
        alpha = self.lexicon_alpha
        totals = maximize(rules, layout, counts, smoothing=self.smoothing)
        grammar = grammar_of_parameters(rules, layout, counts, totals, alpha=alpha)
        self._set_model(grammar, coarse_pcfg(rules, alpha=alpha), rules)
        self.m_ = grammar.m
        label_count = rules.label_count.tolist()
        self.counts_ = dict(zip(rules.nonterminals, label_count, strict=True))
        self._set_states(rules.nonterminals, states, next(iter(X.chunks())))
        return self

    def _set_states(self, nonterminals, states, treebank):
        """Set the attributes of the latent states, and warn of copies of a state."""
        labels = dict(zip(nonterminals, states.labels, strict=True))
        inside, outside = (
            dict(zip(nonterminals, columns, strict=True))
            for columns in zip(*states.columns, strict=True)
        )
        names = [_FeatureNames(treebank, side) for side in SIDES]
        self.pivots_, self.outside_pivots_ = {}, {}
        self.r_, self.s_ = {}, {}
        for a, label in labels.items():
            self.pivots_[a] = names[0].take(inside[a][label.anchors])
            self.outside_pivots_[a] = names[1].take(outside[a][label.outside_anchors])
            self.r_[a] = _spread(label.r, inside[a], len(names[0]))
            self.s_[a] = _spread(label.s, outside[a], len(names[1]))
        self.state_probabilities_ = {a: label.prior for a, label in labels.items()}
        self.alpha_ = {a: label.alpha for a, label in labels.items()}
        self.beta_ = {a: label.beta for a, label in labels.items()}
        self.concavity_ = {
            a: float(label.information[-1]) for a, label in labels.items()
        }
        enough = _NODES_PER_PIVOT * self.anchor_min_count
        collapsed = [
            a
            for a, label in labels.items()
            if len(label.prior) > 1
            and self.counts_[a] >= enough * len(label.prior)
            and label.information[1] <= _COLLAPSED
        ]
        if collapsed:
            shown = ", ".join(collapsed[:5]) + (", ..." if len(collapsed) > 5 else "")
            warn_caller(
                f"the latent states of {len(collapsed)} nonterminals collapse "
                f"({shown}): features have the same distribution in all of them, so "
                "that eq. 1 has no unique maximum; ask for one state of these (m), "
                "lower prior, or add features",
                UserWarning,
            )

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
            objective=self.objective,
            prior=self.prior,
            tempering=self.tempering,
            solver=self.solver,
            solver_tol=self.solver_tol,
            solver_max_iter=self.solver_max_iter,
            matching_max_iter=self.matching_max_iter,
            tol=self.tol,
        )
        return node_states(nodes, index, projections, m, options, n_jobs=self.n_jobs)


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


class _FeatureNames:
    """Names of the features of a block, or their numbers where they have none."""

    def __init__(self, treebank, side):
        self._names = treebank.block_names[side]
        self._size = treebank.blocks[side].shape[1]

    def __len__(self):
        return self._size

    def take(self, columns):
        if self._names is None:
            return [str(column) for column in columns.tolist()]
        return [self._names[column] for column in columns.tolist()]


def _spread(values, columns, n_columns):
    """Return rows over some columns as a sparse matrix over all columns."""
    row, place = np.nonzero(values)
    return sparse.csr_matrix(
        (values[row, place], (row, columns[place])), shape=(len(values), n_columns)
    )
