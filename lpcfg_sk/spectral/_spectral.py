import sys
import tempfile
import warnings
from numbers import Integral, Real

import numpy as np
from joblib import Memory
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_memory

from lpcfg_sk._base import BaseLPCFG
from lpcfg_sk._validation import N_STATES, Interval, StrOptions, fit_context
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.lpcfg import RuleIndex, coarse_pcfg
from lpcfg_sk.lpcfg._rule_counts import shard_weights, take_inventory
from lpcfg_sk.lpcfg._rules import requested_states, weighted_trees
from lpcfg_sk.spectral._decomposition import decompose, project
from lpcfg_sk.spectral._moments import accumulate_moments, solve
from lpcfg_sk.spectral._sharded import ShardedFeatures
from lpcfg_sk.treebank import check_treebank
from lpcfg_sk.treebank._sharded import ShardedTreebank

_BLOCKS = ("inside", "outside")


class SpectralLPCFG(BaseLPCFG):
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
    m : int, dict or callable, default=8
        Number of latent states of each nonterminal: one number, a mapping of
        nonterminals to numbers (1 for those not named), or
        ``m(nonterminal, count) -> int``. It is cut to the numerical rank of Ω^a; a
        nonterminal that occurs only at roots has one state.
    scaling : float, default=5.0
        Feature i is multiplied by √(M / (count_i + scaling)) before the singular
        value decomposition, which brings rare and frequent features to the same
        size. None leaves the features as they are.
    smoothing : float, default=10.0
        Strength C of the interpolation of a rule's third moments with products of
        its lower moments (see Notes), in units of √count. Larger `m` bears more:
        20 from 16 states on. None turns it off.
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
    node_sampling : {"all", "one"}, default="all"
        Use all nodes of all trees, or one node of each tree, drawn at random, as
        the theory of [1]_ assumes. The latter is for study: it throws most of the
        data away, and where trees differ in size it is biased, because it weights
        a node by one over the size of its tree, which makes inside and outside
        trees dependent given the latent state.
    m_max : int, default=None
        Number of singular vectors to compute, where that is more than `m`. With
        `memory`, a search over ``m`` up to `m_max` computes them once.
    memory : str or joblib.Memory, default=None
        Where to keep decompositions. A later fit on the same treebank (with the
        same features, weights and scaling) that needs no more vectors takes the
        leading ones.
    decoder : {"auto", "mbr", "max-marginal", "max-rule-product", "viterbi"}, \
default="auto"
        Which tree :meth:`predict` returns; "auto" is "max-marginal" where parameters
        are negative, as they are for more than one state, and else "mbr". "viterbi"
        takes no negative ones.
    prune : float or None, default=3e-4
        Chart items with a smaller posterior under a plain treebank PCFG are left
        out. None (or 0) for full charts, which is exact and slow.
    max_memory : int, default=2**31
        Most bytes that the chart of one sentence may take.
    n_jobs : int, default=None
        Number of jobs, as in joblib. The result does not depend on it.
    verbose : int, default=0
        Whether to report the steps (on standard error).
    random_state : int, RandomState or None, default=None
        For ``svd_solver="randomized"`` and ``node_sampling="one"``.

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
        computed; the first ``m_[a]`` are used.
    counts_ : dict of str to float
        Number of nodes of each nonterminal in training.
    n_inside_features_ : int
        Number of inside features in training.

    See Also
    --------
    InsideFeatures, OutsideFeatures : Make the features.
    make_parser : Makes a pipeline of all steps.

    Notes
    -----
    The algorithm is that of figures 7 and 8 of [1]_, over all nodes. With
    ``scaling=None, smoothing=None, lexical_smoothing=None, lexicon_alpha=0`` it is
    that literally. With n the count of a rule and λ = √n / (C + √n), smoothing
    replaces the mean E of z⊗y⊗y' over its nodes by

    .. math:: λE + (1-λ)(λK_2 + (1-λ)(λL_{rule} + (1-λ)L_{nonterminal}))

    where K₂ is the mean of the three products of a second and a first moment, and
    the L are products of first moments, given the rule and given the nonterminals
    [2]_.

    Parameters may be negative, and so may the value of a tree; its log probability
    is then -inf.

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
        "m": N_STATES,
        "scaling": [None, Interval(Real, 0, None, closed="left")],
        "smoothing": [None, Interval(Real, 0, None, closed="left")],
        "lexical_smoothing": [None, Interval(Real, 0, None, closed="left")],
        "lexicon_alpha": [Interval(Real, 0, None, closed="left")],
        "rank_tol": [Interval(Real, 0, 1, closed="left")],
        "svd_solver": [StrOptions({"arpack", "randomized"})],
        "node_sampling": [StrOptions({"all", "one"})],
        "m_max": [None, Interval(Integral, 1, None, closed="left")],
        "memory": [None, str, Memory],
        "random_state": ["random_state"],
    }

    _uses_features = True

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
        node_sampling="all",
        m_max=None,
        memory=None,
        decoder="auto",
        prune=3e-4,
        max_memory=2**31,
        n_jobs=None,
        verbose=0,
        random_state=None,
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
        self.smoothing = smoothing
        self.lexical_smoothing = lexical_smoothing
        self.lexicon_alpha = lexicon_alpha
        self.rank_tol = rank_tol
        self.svd_solver = svd_solver
        self.node_sampling = node_sampling
        self.m_max = m_max
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
            nonterminal in temporary files; `memory` is not used for them.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            Weights of the trees.

        Returns
        -------
        self : object
        """
        if isinstance(X, ShardedTreebank):
            with tempfile.TemporaryDirectory(prefix="lpcfg_sk-spectral-") as folder:
                return self._fit_shards(X, sample_weight, folder)
        X, tree_weight = weighted_trees(X, sample_weight, self)
        check_treebank(X, estimator=self, blocks=_BLOCKS)
        index = RuleIndex.from_treebank(X)
        random_state = check_random_state(self.random_state)
        weight = self._node_weight(index, tree_weight, random_state)
        counts = np.bincount(
            index.label, weights=weight, minlength=len(index.nonterminals)
        )
        wanted = requested_states(self.m, index.nonterminals, counts)
        projections = self._decompose(X, index, weight, wanted, random_state)
        m = self._choose_m(wanted, projections)
        inside = project(X.blocks["inside"], index.label, projections, "inside", m)
        outside = project(X.blocks["outside"], index.label, projections, "outside", m)
        moments = accumulate_moments(
            index, inside, outside, weight, m, n_jobs=self.n_jobs
        )
        del inside, outside
        self._learn(index, moments, projections, counts, tree_weight)
        self.binarized_ = bool(X.binarized)
        self.n_inside_features_ = X.blocks["inside"].shape[1]
        return self

    def _fit_shards(self, X, sample_weight, folder):
        """Learn from shards: decompose features in files, and add up moments."""
        if self.node_sampling != "all":
            raise ValueError(
                f"node_sampling={self.node_sampling!r} draws from all trees together; "
                "use X.load(), or all nodes"
            )
        weights = shard_weights(X, sample_weight, self)
        index = take_inventory(X, weights, self, n_jobs=self.n_jobs)
        counts = index.label_counts()
        wanted = requested_states(self.m, index.nonterminals, counts)
        features = ShardedFeatures(X, weights, index, self, folder)
        n_vectors = self._numbers_of_vectors(index, wanted)
        projections = features.decompose(
            n_vectors,
            scaling=self.scaling,
            solver=self.svd_solver,
            seed=self._seed(check_random_state(self.random_state)),
        )
        m = self._choose_m(wanted, projections)
        moments = features.moments(projections, m)
        self._learn(index, moments, projections, counts, None)
        self.binarized_ = index.binarized
        self.n_inside_features_ = int(features.n_features[0])
        return self

    def _choose_m(self, wanted, projections):
        """Numbers of states: those wanted, as far as the ranks go."""
        m = np.array(
            [
                max(1, min(w, _rank(p.singular_values, self.rank_tol)))
                for w, p in zip(wanted, projections, strict=True)
            ],
            dtype=np.int64,
        )
        self._say(
            f"{len(m)} nonterminals, {m.max()} states at most, {m.mean():.1f} each"
        )
        return m

    def _learn(self, index, moments, projections, counts, tree_weight):
        """Turn moments into a model."""
        m = moments.n_states
        self._say(f"{index.n_rules} rules, {moments.rule_third.size} parameters")
        grammar = solve(
            index,
            moments,
            smoothing=self.smoothing,
            lexical_smoothing=self.lexical_smoothing,
            alpha=self.lexicon_alpha,
            weight=tree_weight,
        )
        coarse = coarse_pcfg(index, weight=tree_weight, alpha=self.lexicon_alpha)
        self.grammar_ = grammar
        self.coarse_ = coarse
        names = index.nonterminals
        self.m_ = dict(zip(names, m.tolist(), strict=True))
        self.counts_ = dict(zip(names, counts.tolist(), strict=True))
        self.projections_ = dict(zip(names, projections, strict=True))
        self.singular_values_ = {
            a: p.singular_values for a, p in self.projections_.items()
        }

    def transform(self, X):
        """Put the projected inside vector (U^a)ᵀφ of each node into the treebank.

        Parameters
        ----------
        X : Treebank
            Binary trees that carry the block of :class:`InsideFeatures`.

        Returns
        -------
        treebank : Treebank
            `X` with the block ``"vectors"``: row i has ``m_[a]`` numbers for a node
            of nonterminal a, and zeros after them; all zeros where a is unknown.
        """
        check_is_fitted(self)
        X = check_treebank(
            X, estimator=self, binary=True, allow_empty=True, blocks=("inside",)
        )
        block = X.blocks["inside"]
        if block.shape[1] != self.n_inside_features_:
            raise ValueError(
                f"X has {block.shape[1]} inside features, {type(self).__name__} was "
                f"fitted with {self.n_inside_features_}; use the InsideFeatures that "
                "made the training features"
            )
        label, _ = self.grammar_.encode(X)
        m = np.array([self.m_[a] for a in self.grammar_.nonterminals])
        projections = [self.projections_[a] for a in self.grammar_.nonterminals]
        vectors = project(block, label, projections, "inside", m)
        return X.replace(
            blocks={**X.blocks, "vectors": vectors},
            block_names={**X.block_names, "vectors": None},
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
        check_is_fitted(self)
        X = check_treebank(
            X, estimator=self, parsed=True, binary=True, allow_empty=True
        )
        signs, logs = self.grammar_.tree_values(X, n_jobs=self.n_jobs)
        if (signs < 0).any():
            warnings.warn(
                f"{(signs < 0).sum()} of {len(signs)} trees have a negative value, "
                f"which spectral estimates allow, and {(signs == 0).sum()} the value "
                "zero; their log probability is -inf",
                ParseFailureWarning,
                stacklevel=2,
            )
        return np.where(signs > 0, logs, -np.inf)

    def _say(self, text):
        if self.verbose:
            sys.stderr.write(f"SpectralLPCFG: {text}\n")

    def _node_weight(self, index, tree_weight, random_state):
        if self.node_sampling == "all":
            return index.node_weight(tree_weight)
        sizes = np.diff(index.node_offsets)
        drawn = index.node_offsets[:-1] + random_state.randint(0, sizes)
        weight = np.zeros(index.n_nodes)
        weight[drawn] = tree_weight
        if not weight[index.node_offsets[:-1]].any():
            raise ValueError(
                'node_sampling="one" drew no root node, so nothing is known of roots; '
                "use more trees, another random_state, or all nodes"
            )
        return weight

    def _numbers_of_vectors(self, index, wanted):
        n_vectors = np.maximum(wanted, self.m_max or 1)
        below = np.zeros(len(wanted), dtype=bool)
        below[index.rule_left] = below[index.rule_right] = True
        wanted[~below] = n_vectors[~below] = 1
        return n_vectors

    def _seed(self, random_state):
        if self.svd_solver == "randomized":
            return random_state.randint(np.iinfo(np.int32).max)
        return None

    def _decompose(self, X, index, weight, wanted, random_state):
        """Singular vectors, at least the wanted ones; one for roots, in place."""
        n_vectors = self._numbers_of_vectors(index, wanted)
        self._say(
            f"singular vectors of {X.blocks['inside'].shape[1]} inside and "
            f"{X.blocks['outside'].shape[1]} outside features at {index.n_nodes} nodes"
        )
        seed = self._seed(random_state)
        cached = check_memory(self.memory).cache(decompose, ignore=["n_jobs"])
        return cached(
            X.blocks["inside"],
            X.blocks["outside"],
            index.label,
            weight,
            n_vectors,
            scaling=self.scaling,
            solver=self.svd_solver,
            seed=seed,
            n_jobs=self.n_jobs,
        )


def _rank(singular_values, tol):
    if not len(singular_values):
        return 0
    return int(np.sum(singular_values > tol * singular_values[0]))
