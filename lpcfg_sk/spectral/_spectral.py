"""Spectral learning: features, singular vectors, moments, grammar."""

from numbers import Integral, Real

import numpy as np
from joblib import Memory
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_memory

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._files import LeftOutMixin
from lpcfg_sk._parallel import Spool
from lpcfg_sk._validation import N_STATES, Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import coarse_pcfg, requested_states
from lpcfg_sk.parsing import chart_log_probs
from lpcfg_sk.spectral._decomposition import (
    M_MAX,
    STATE_RULES,
    decompose,
    numerical_rank,
    project,
    sigma_rows,
    state_number,
)
from lpcfg_sk.spectral._family import DecomposedCorpus
from lpcfg_sk.spectral._moments import corpus_moments, solve
from lpcfg_sk.spectral._node_features import SIDES, NodeFeatures, draw_samples
from lpcfg_sk.treebank import check_treebank, count_rules, weighted_trees


class SpectralLPCFG(LeftOutMixin, BaseLPCFG):
    """Latent-variable PCFG learnt by singular value decompositions.

    Nodes of the training trees are described by features of the subtree below them
    (φ) and of everything around it (ψ). For each nonterminal a the singular vectors
    of Ω^a = E[φψᵀ | a] project both to m numbers, and means of products of projected
    nodes are the parameters of the grammar, up to invertible matrices that cancel
    in the value of every tree. There is no iteration and no local optimum: if trees
    do come from an L-PCFG whose states the features can tell apart, the estimates
    converge to it at the rate 1/√M.

    Parameters
    ----------
    m : int, dict, callable or "singular_values", default=8
        Number of latent states of each nonterminal: one number, a mapping of
        nonterminals to numbers (1 for those not named),
        ``m(nonterminal, count) -> int``, or "singular_values", which reads it off
        the singular values of Ω^a by `state_rule`. It is cut to the numerical rank of
        Ω^a; a nonterminal that occurs only at roots has one state.
    scaling : float, default=5.0
        Feature i is multiplied by √(M / (count_i + scaling)) before the singular
        value decomposition, which brings rare and frequent features to the same
        size. None does not scale the features.
    smoothing : float, default=10.0
        Strength C of the interpolation of a rule's third moments with products of
        its lower moments (see Notes), in units of √count. Larger `m` needs more
        smoothing: 20 for 16 states or more. None turns it off.
    lexical_smoothing : float, default=5.0
        Strength of the interpolation of the vector of a lexical rule with the mean
        vector of its pre-terminal, in the same units. None turns it off.
    lexicon_alpha : float, default=1.0
        Strength, in tokens, of the signature classes of :class:`RareWords` in the
        emissions of words. 0 turns it off; unknown words are then impossible.
    rank_tol : float, default=1e-6
        Singular values below this fraction of the largest one count as zero.
    svd_solver : {"arpack", "randomized"}, default="arpack"
        How the decompositions of frequent nonterminals are computed.
    ridge : float, default=0.0
        Regularisation of the inverse of Σ^a (equations 14 and 15), as a fraction of its
        largest singular value: with ρ that product, Σ(Σ² + ρ²)⁻¹ takes the place of
        Σ⁻¹, which damps directions with small singular values.
    node_sampling : {"all", "one", "one-by-size"}, default="all"
        Use all nodes of all trees, or one node of each tree, drawn at random, as
        the theory of [1]_ assumes. The latter is for study: it throws most of the
        data away, and where trees differ in size "one" is biased, because it weights
        a node by one over the size of its tree, which makes inside and outside
        trees dependent given the latent state. "one-by-size" gives the drawn node the
        weight of all nodes of its tree, which removes that bias.
    split_samples : bool, default=False
        Whether the singular vectors (figure 8) and the moments (figure 7) come from
        independent samples, a random half of the trees each, as the theory assumes.
        Rules that only the first half has get parameters of zero.
    m_max : int, default=None
        Number of singular vectors to compute, where that is more than `m`. With
        `memory`, a search over ``m`` up to `m_max` computes them once. With
        ``m="singular_values"`` the largest number of states, 16 where None.
    state_rule : {"energy", "gap", "ramp"}, default="energy"
        How ``m="singular_values"`` chooses, given the singular values σ₁ ≥ … ≥ σ_K of
        Ω^a, K at most `m_max`, and t the `state_threshold`.

        - "energy": the least k with σ₁² + … + σ_k² ≥ t (σ₁² + … + σ_K²);
        - "gap": the k with the largest σ_k / σ_{k+1}, or K where that is below t or
          where Ω^a has a lower rank than `m_max`;
        - "ramp": the number of σ_i > t σ₁, but at most
          1 + (m_max − 1) min(1, max(0, (n − 50) / 450)), rounded, for a nonterminal
          with n nodes.
    state_threshold : float, default=None
        The parameter t of `state_rule`; where None, 0.95 for "energy", 3 for "gap" and
        0.01 for "ramp".
    memory : str or joblib.Memory, default=None
        Where to keep decompositions. A later fit on the same treebank (with the
        same features, weights and scaling) that needs no more vectors takes the
        leading ones.
    decoder : str, default="auto"
        Which tree :meth:`predict` returns: "mbr", "max-marginal", "max-rule-product" or
        "viterbi" (no negative parameters). "auto" is "max-marginal" where parameters
        are negative, as they are for more than one state, and else "mbr".
    prune : float or None, default=6e-4
        Chart items whose posterior under a plain treebank PCFG is estimated to be
        smaller are left out, see "Pruning" in the user guide. None (or 0) for full
        charts, which is exact and slow.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take. A sentence that needs more
        is parsed with ``prune`` raised to 6e-4, 6e-3 and 6e-2 in turn.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence without a parse, or whose coarsest
        chart does not fit `max_memory`: give it a flat tree, raise an error, or leave
        it without a tree.
    n_jobs : int, default=None
        Number of jobs, as in joblib. The result does not depend on it.
    verbose : int, default=0
        Whether to report the steps on standard error.
    random_state : int, RandomState or None, default=None
        For ``svd_solver="randomized"``, drawn nodes and split samples.

    Attributes
    ----------
    grammar_ : LPCFG
        The grammar.
    coarse_ : LPCFG
        The treebank PCFG that prunes charts.
    m_ : dict of str to int
        Number of states of each nonterminal.
    singular_values_ : dict of str to ndarray
        Singular values of Ω^a, all that were computed.
    projections_ : dict of str to Projection
        Singular vectors of Ω^a as weights of feature columns, all that were
        computed; the first ``m_[a]`` are used. Compact model files leave them out.
    counts_ : dict of str to float
        Number of nodes of each nonterminal in training.
    n_inside_features_, n_outside_features_ : int
        Numbers of features in training.

    See Also
    --------
    InsideFeatures, OutsideFeatures : Make the features.
    make_parser : Makes a pipeline of all steps.

    Notes
    -----
    The algorithm is that of figures 7 and 8 of [1]_, over all nodes. With
    ``scaling=None, smoothing=None, lexical_smoothing=None, lexicon_alpha=0`` it is
    exactly that. With n the count of a rule and λ = √n / (C + √n), smoothing
    replaces the mean E of z⊗y⊗y' over its nodes by

    .. math:: λE + (1-λ)(λK_2 + (1-λ)(λL_{rule} + (1-λ)L_{nonterminal}))

    where K₂ is the mean of the three products of a second and a first moment, and
    the L are products of first moments, given the rule and given the nonterminals
    [2]_.

    Parameters may be negative, and so may the value of a tree or of a sentence; its log
    probability is then -inf. :meth:`mixture_log_prob` is finite there, and
    ``log_likelihood_scorer(zero="mix")`` chooses `m` by it.

    References
    ----------
    .. [1] S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2014).
       Spectral learning of latent-variable PCFGs: algorithms and sample
       complexity. JMLR 15.
    .. [2] S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2013).
       Experiments with spectral learning of latent-variable PCFGs. NAACL.

    Examples
    --------
    >>> from lpcfg_sk import SpectralLPCFG, Treebank, make_parser
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
    ...                   "(S (NP (D a) (N cat)) (VP (V ran)))"] * 4)
    >>> parser = make_parser(SpectralLPCFG(m=2)).fit(trees)
    >>> str(parser.predict([["the", "dog", "ran"]])[0])
    '(S (NP (D the) (N dog)) (VP (V ran)))'
    """

    _parameter_constraints: dict = {
        **BaseLPCFG._parameter_constraints,
        "m": [*N_STATES, StrOptions({"singular_values"})],
        "scaling": [None, Interval(Real, 0, None, closed="left")],
        "smoothing": [None, Interval(Real, 0, None, closed="left")],
        "lexical_smoothing": [None, Interval(Real, 0, None, closed="left")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        "rank_tol": [Interval(Real, 0, 1, closed="left")],
        "svd_solver": [StrOptions({"arpack", "randomized"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "node_sampling": [StrOptions({"all", "one", "one-by-size"})],
        "split_samples": ["boolean"],
        "m_max": [None, Interval(Integral, 1, None, closed="left")],
        "state_rule": [StrOptions(set(STATE_RULES))],
        "state_threshold": [None, Interval(Real, 0, None, closed="neither")],
        "memory": [None, str, Memory],
        "random_state": ["random_state"],
    }

    _uses_features = True
    _left_out = ("projections_",)

    def __init__(
        self,
        m=8,
        *,
        scaling=5.0,
        smoothing=10.0,
        lexical_smoothing=5.0,
        lexicon_alpha=1.0,
        rank_tol=1e-6,
        svd_solver="arpack",
        ridge=0.0,
        node_sampling="all",
        split_samples=False,
        m_max=None,
        state_rule="energy",
        state_threshold=None,
        memory=None,
        decoder="auto",
        prune=6e-4,
        max_memory=2**31,
        on_failure="flat",
        n_jobs=None,
        verbose=0,
        random_state=None,
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
        self.smoothing = smoothing
        self.lexical_smoothing = lexical_smoothing
        self.lexicon_alpha = lexicon_alpha
        self.rank_tol = rank_tol
        self.svd_solver = svd_solver
        self.ridge = ridge
        self.node_sampling = node_sampling
        self.split_samples = split_samples
        self.m_max = m_max
        self.state_rule = state_rule
        self.state_threshold = state_threshold
        self.memory = memory
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Learn a grammar from trees with features.

        Parameters
        ----------
        X : Treebank or ShardedTreebank
            Binary trees that carry the blocks of :class:`InsideFeatures` and
            :class:`OutsideFeatures`. The features of shards are sorted by
            nonterminal in temporary files, for which `memory` is not used.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            Weights of the trees.

        Returns
        -------
        self : object
        """
        # Figure 8: features of the nodes, and singular vectors by nonterminal.
        corpus = self._decompose_corpus(X, sample_weight, self.m_max or 1)
        n_states = self._numbers_of_states(corpus)
        self._say(
            f"{len(n_states)} nonterminals, {n_states.max()} states at most, "
            f"{n_states.mean():.1f} each"
        )
        # Figure 7: moments of the projected nodes, and parameters from the moments.
        moments = corpus_moments(
            *corpus[:4], n_states, ridge=self.ridge, n_jobs=self.n_jobs
        )
        grammar = self._solve(corpus.rules, moments)
        coarse = coarse_pcfg(corpus.rules, alpha=self.lexicon_alpha)
        return self._set_solution(corpus, n_states, grammar, coarse)

    def _decompose_corpus(self, X, sample_weight, n_vectors):
        """Find the rules of X, and at least `n_vectors` singular vectors (figure 8)."""
        X, weight = weighted_trees(X, sample_weight, self, blocks=SIDES)
        random_state = check_random_state(self.random_state)
        first, second = draw_samples(
            X,
            weight,
            nodes=self.node_sampling,
            split=self.split_samples,
            random_state=random_state,
        )
        rules = count_rules(X, weight, estimator=self, n_jobs=self.n_jobs)
        # The features of a corpus of several chunks go to files.
        with Spool(on_disk=len(X.chunk_offsets) > 2) as spool:
            nodes = NodeFeatures.from_corpus(
                X, first, rules, spool, estimator=self, n_jobs=self.n_jobs
            )
            wanted = self._wanted(rules, nodes.label_count)
            n_vectors = np.where(rules.occurs_below, np.maximum(wanted, n_vectors), 1)
            projections = self._decompose(nodes, n_vectors, random_state)
        ranks = [numerical_rank(p.singular_values, self.rank_tol) for p in projections]
        return DecomposedCorpus(
            X,
            second,
            rules,
            projections,
            wanted,
            np.clip(ranks, 1, n_vectors),
            nodes.label_count,
            tuple(map(len, nodes.feature_counts)),
        )

    def _wanted(self, rules, counts):
        """Return the largest number of states that `m` can mean, by nonterminal."""
        if self.m == "singular_values":
            return np.full(len(counts), self.m_max or M_MAX)
        return requested_states(self.m, rules.nonterminals, counts)

    def _numbers_of_states(self, corpus):
        """Return the number of states of each nonterminal."""
        wanted = corpus.wanted
        if self.m == "singular_values":
            columns = zip(corpus.projections, corpus.label_count, wanted, strict=True)
            wanted = [
                state_number(
                    p.singular_values, n, k, self.state_rule, self.state_threshold
                )
                for p, n, k in columns
            ]
        return np.minimum(corpus.ranks, wanted)

    def _solve(self, rules, moments, **known):
        """Compute the grammar of the moments (figure 7, step 3)."""
        self._say(f"{rules.n_rules} rules, {moments.rule_third.size} parameters")
        return solve(
            rules,
            moments,
            smoothing=self.smoothing,
            lexical_smoothing=self.lexical_smoothing,
            alpha=self.lexicon_alpha,
            **known,
        )

    def _set_solution(self, corpus, n_states, grammar, coarse):
        """Set the fitted attributes."""
        self._set_model(grammar, coarse, corpus.rules)
        names = corpus.rules.nonterminals
        self.m_ = dict(zip(names, n_states.tolist(), strict=True))
        self.counts_ = dict(zip(names, corpus.label_count.tolist(), strict=True))
        self.projections_ = dict(zip(names, corpus.projections, strict=True))
        self.singular_values_ = {
            a: p.singular_values for a, p in self.projections_.items()
        }
        self.n_inside_features_, self.n_outside_features_ = corpus.n_features
        return self

    def _decompose(self, nodes, n_vectors, random_state):
        """Compute singular vectors of each nonterminal, or find them in `memory`."""
        n_inside, n_outside = map(len, nodes.feature_counts)
        self._say(
            f"singular vectors of {n_inside} inside and {n_outside} outside features "
            f"at {nodes.n_nodes.sum()} nodes"
        )
        seed = None
        if self.svd_solver == "randomized":
            seed = random_state.randint(np.iinfo(np.int32).max)
        # The cache would never hit: temporary files have new names in each fit.
        memory = check_memory(self.memory if nodes.folder is None else None)
        return memory.cache(decompose, ignore=["n_jobs"])(
            nodes,
            n_vectors,
            scaling=self.scaling,
            solver=self.svd_solver,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def transform(self, X):
        """Put the projections y and z of each node into the treebank.

        Parameters
        ----------
        X : Treebank
            Binary trees that carry the block of :class:`InsideFeatures`, and for z
            also that of :class:`OutsideFeatures`.

        Returns
        -------
        treebank : Treebank
            `X` with the block ``"vectors"``, y = (U^a)ᵀφ, and where it has outside
            features the block ``"outside_vectors"``, z = (V^a)ᵀψ (figure 7, step 1).
            Row i has ``m_[a]`` numbers for a node of nonterminal a, and zeros after
            them; all zeros where a is unknown.
        """
        check_is_fitted(self)
        names = self.grammar_.nonterminals
        projections = [self.projections_[a] for a in names]
        X = check_treebank(
            X, estimator=self, binary=True, allow_empty=True, blocks=("inside",)
        )
        label, _ = self.grammar_.encode(X)
        m = np.array([self.m_[a] for a in names])
        blocks = {}
        for side, block in zip(SIDES, ("vectors", "outside_vectors"), strict=True):
            if side in X.blocks:
                self._check_features(X.blocks[side], side)
                blocks[block] = project(X.blocks[side], label, projections, side, m)
        if "outside_vectors" in blocks:
            # The projection of the moments holds the factor (Σ^a)⁻¹ of step 3.
            blocks["outside_vectors"] *= sigma_rows(projections, m)[label]
        return X.replace(
            blocks={**X.blocks, **blocks},
            block_names={**X.block_names, **dict.fromkeys(blocks)},
        )

    def _check_features(self, block, side):
        expected = getattr(self, f"n_{side}_features_", None)
        if expected is None:
            # Files of earlier versions store only the columns that a model uses.
            used = [getattr(p, side)[-1:].tolist() for p in self.projections_.values()]
            expected = max(
                [block.shape[1], *(1 + last for [last] in filter(len, used))]
            )
        if block.shape[1] != expected:
            raise ValueError(
                f"X has {block.shape[1]} {side} features, {type(self).__name__} was "
                f"fitted with {expected}; use the {side.capitalize()}Features that "
                "made the training features"
            )

    def score_samples(self, X):
        """Log probability of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees, as in training.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_trees,)
            Natural logarithm; -inf where the value is zero or negative, never nan.
            Negative values are counted in one :class:`ParseFailureWarning`.
        """
        X = self._check_trees(X)
        signs, logs = self.grammar_.tree_values(X, n_jobs=self.n_jobs)
        if (signs < 0).any():
            warn_caller(
                f"{(signs < 0).sum()} of {len(signs)} trees have a negative value, "
                f"which spectral estimates allow, and {(signs == 0).sum()} the value "
                "zero; their log probability is -inf",
                ParseFailureWarning,
            )
        return np.where(signs > 0, logs, -np.inf)

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
            the sum is zero or negative, never nan. Sums that are not positive are
            counted in one :class:`ParseFailureWarning`.

        See Also
        --------
        mixture_log_prob : Finite for every sentence with a tree.
        span_marginals : Says what pruning and unknown words mean here.
        """
        X = self._check_sentences(X)
        charts = self._precise_charts(self._parser(), X)
        log_prob = chart_log_probs(charts, n_jobs=self.n_jobs)
        impossible = np.flatnonzero(np.isneginf(log_prob))
        filled = [charts.chart(int(row), outside=False) for row in impossible]
        values = np.array([chart.total for chart in filled if chart is not None])
        if len(values):
            without = len(impossible) - len(values)
            warn_caller(
                f"{(values < 0).sum()} of {len(X)} sentences have a negative value, "
                f"which spectral estimates allow, {(values >= 0).sum()} the value zero "
                f"and {without} no tree; their log probability is -inf",
                ParseFailureWarning,
            )
        return log_prob
