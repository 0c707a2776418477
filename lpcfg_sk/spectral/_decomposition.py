"""Singular value decomposition of the features of each nonterminal (figure 8).

Numbers of latent states can be read off the singular values.
"""

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator
from sklearn.utils.extmath import svd_flip

from lpcfg_sk._kernels._moments import active_columns, local_rows, project_rows
from lpcfg_sk._parallel import Spool, cut_by_work, map_chunks
from lpcfg_sk._svd import is_small, leading_triplets

#: Most feature values of a nonterminal to decompose in memory; more are read from
#: files for each product.
_MOST_ENTRIES = 2**22
#: Feature values in one part of these files, which a product reads at a time.
_PART_ENTRIES = 2**20

#: The ramp rises between these counts, as in Rainbow, the parser of Narayan and Cohen.
#: Rainbow has a second ramp, from 10 to 100, which never lies below this one.
_RAMP = (50.0, 500.0)


class Projection(NamedTuple):
    """The singular vectors of one nonterminal's Ω^a.

    Attributes
    ----------
    inside, outside : ndarray of int64
        Columns of the feature blocks that occur with the nonterminal.
    U, V : ndarray of float64, shapes (n_inside, k) and (n_outside, k)
        Weights of those columns: y = Uᵀφ and z = Vᵀψ for features φ and ψ as they
        are in the blocks. They are the left and right singular vectors, row i
        multiplied by the scaling of feature i.
    singular_values : ndarray of float64, shape (k,)
        Singular values of Ω^a, decreasing.
    phi_norm, psi_norm : float
        Largest norms of the scaled features of a node of the nonterminal; the
        theory takes them as 1.
    psi_rms : float
        Root mean square of the norms of the scaled outside features.

    Examples
    --------
    >>> from lpcfg_sk import SpectralLPCFG, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> parser = make_parser(SpectralLPCFG(4)).fit(load_toy(60))
    >>> projection = parser[-1].projections_["NP"]
    >>> projection.U.shape == (len(projection.inside), 4)
    True
    """

    inside: np.ndarray
    outside: np.ndarray
    U: np.ndarray
    V: np.ndarray
    singular_values: np.ndarray
    phi_norm: float
    psi_norm: float
    psi_rms: float


def decompose(
    nodes, n_vectors, *, scaling=None, solver="arpack", seed=None, n_jobs=None
):
    """Singular value decomposition of every Ω^a (figure 8 of the paper).

    Parameters
    ----------
    nodes : NodeFeatures
        Features φ and ψ of the nodes of each nonterminal.
    n_vectors : ndarray of int64, shape (n_nonterminals,)
        Number of singular vectors wanted for each nonterminal.
    scaling : float, default=None
        Feature i is multiplied by √(M / (count_i + scaling)), by 1 where None.
    solver : {"arpack", "randomized"}, default="arpack"
        How large problems are solved; small ones are always solved densely.
    seed : int, default=None
        For the randomized solver.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    projections : list of Projection
        One per nonterminal, with at most the wanted number of vectors.
    """
    scales = [
        _feature_scale(count, nodes.weight, scaling) for count in nodes.feature_counts
    ]

    def chunk(begin, end):
        return [one(a) for a in range(begin, end)]

    def one(a):
        settings = (n_vectors[a], scales, solver, seed)
        if nodes.folder and nodes.n_entries[a] > _MOST_ENTRIES and solver == "arpack":
            with Spool(on_disk=True, folder=nodes.folder) as spool:
                files = _FactorFiles(spool)
                return _decompose_label(lambda: nodes.parts(a), files, *settings)
        label_nodes = nodes.of_label(a)
        return _decompose_label(lambda: [label_nodes], _FactorList(), *settings)

    chunks = cut_by_work(nodes.n_nodes + 1)
    return [p for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for p in part]


def _decompose_label(parts, factors, n_vectors, scales, solver, seed):
    """Decompose the Ω^a of one nonterminal.

    Parameters
    ----------
    parts : callable
        Returns an iterator over the nodes as :class:`LabelNodes`.
    factors : _FactorList or _FactorFiles
        Where to keep the factors of Ω^a.
    n_vectors : int
        Number of singular vectors wanted.
    scales : pair of ndarray
        Factor of each inside and outside feature.
    solver, seed
        See :func:`decompose`.

    Returns
    -------
    projection : Projection
    """
    used, n_nodes, total = ([], []), 0, 0.0
    for part in parts():
        for side, block in enumerate((part.inside, part.outside)):
            used[side].append(_columns(block, part.rows))
        n_nodes += len(part.rows)
        total = total + part.weight.sum()
    columns = [np.unique(np.concatenate(c)) if c[1:] else c[0] for c in used]
    scales = [scale[c] for scale, c in zip(scales, columns, strict=True)]
    norms = np.zeros(3)
    for part in parts():
        share = part.weight / max(total, np.finfo(float).tiny)
        phi, psi = (
            _scaled(_local(block, part.rows, c), scale)
            for block, c, scale in zip(
                (part.inside, part.outside), columns, scales, strict=True
            )
        )
        squares = _squared_norms(psi)
        norms[0] = max(norms[0], _squared_norms(phi).max(initial=0.0))
        norms[1] = max(norms[1], squares.max(initial=0.0))
        norms[2] += share @ squares
        factors.append(_scaled_rows(phi, share), psi)
    shape = tuple(len(c) for c in columns)
    k = min(int(n_vectors), n_nodes, *shape)
    u, s, v = _svd(factors, shape, k, solver, seed)
    phi_norm, psi_norm, psi_rms = np.sqrt(norms).tolist()
    return Projection(
        inside=columns[0],
        outside=columns[1],
        U=u * scales[0][:, None],
        V=v * scales[1][:, None],
        singular_values=s,
        phi_norm=phi_norm,
        psi_norm=psi_norm,
        psi_rms=psi_rms,
    )


def project(block, label, projections, side, m, *, ridge=0.0):
    """Project the features of all nodes.

    Parameters
    ----------
    block : CSR matrix, shape (n_nodes, n_features)
        Features.
    label : ndarray of int32, shape (n_nodes,)
        Nonterminal of each node, -1 for unknown ones.
    projections : list of Projection
        One per nonterminal.
    side : {"inside", "outside"}
        y = Uᵀφ, or z = (Σ^a)⁻¹Vᵀψ, where Σ^a = UᵀΩ^aV is diagonal.
    m : ndarray of int64, shape (n_nonterminals,)
        Number of leading singular vectors to use.
    ridge : float, default=0.0
        With ρ the ridge times the largest singular value, (Σ² + ρ²)⁻¹Σ takes the
        place of the inverse Σ⁻¹.

    Returns
    -------
    vectors : ndarray of float64, shape (n_nodes, max(m))
        Row i has ``m[label[i]]`` values, zeros after them. A nonterminal without
        singular vectors has the constant 1.
    """
    most = max((len(p.singular_values) for p in projections), default=1)
    if max(m, default=1) > max(most, 1):
        raise ValueError("the numbers of states do not fit the singular vectors")
    vectors = np.zeros((block.shape[0], int(max(m, default=1))))
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(len(m) + 1))
    position = np.full(block.shape[1], -1, dtype=np.int32)
    for a, projection in enumerate(projections):
        rows = order[bounds[a] : bounds[a + 1]]
        if not len(rows):
            continue
        if not len(projection.singular_values):
            vectors[rows, 0] = 1.0
            continue
        columns, weights = _weights(projection, side, m[a], ridge)
        if weights.shape != (len(columns), m[a]):
            # The loop below writes as many numbers as there are weights.
            raise ValueError("the numbers of states do not fit the singular vectors")
        position[columns] = np.arange(len(columns), dtype=np.int32)
        project_rows(
            block.indptr,
            block.indices,
            block.data,
            rows,
            position,
            weights,
            vectors,
        )
        position[columns] = -1
    return vectors


def project_label(nodes, projection, m):
    """Project the features of the nodes of one nonterminal.

    Parameters
    ----------
    nodes : LabelNodes
        The nodes.
    projection : Projection
        That of the nonterminal, with at least m vectors.
    m : int
        Number of leading singular vectors to use.

    Returns
    -------
    features : pair of CSR matrix of float64
        Inside and outside features of the nodes, over the columns of `projection`.
    vectors : pair of ndarray of float64, shape (n_nodes, m)
        Their projections, as in :func:`project`.
    """
    features, vectors = [], []
    for side in ("inside", "outside"):
        columns, weights = _weights(projection, side, m)
        local = _local(getattr(nodes, side), nodes.rows, columns)
        everything = np.arange(len(nodes.rows)), np.arange(len(columns), dtype=np.int32)
        projected = np.empty((len(nodes.rows), m))
        project_rows(
            local.indptr, local.indices, local.data, *everything, weights, projected
        )
        features.append(local)
        vectors.append(projected)
    return features, vectors


def _weights(projection, side, m, ridge=0.0):
    """Return the columns of one side and the weights of the first m vectors."""
    if side == "inside":
        return projection.inside, np.ascontiguousarray(projection.U[:, :m])
    sigma = projection.singular_values[:m]
    weights = projection.V[:, :m] / sigma
    if ridge > 0:
        weights /= 1 + (ridge * sigma[0] / sigma) ** 2
    return projection.outside, np.ascontiguousarray(weights)


def _local(block, rows, columns):
    """Return some rows of a CSR matrix over some of its columns, in float64."""
    position = np.full(block.shape[1], -1, dtype=np.int32)
    position[columns] = np.arange(len(columns), dtype=np.int32)
    indptr, indices, data = local_rows(
        block.indptr, block.indices, block.data, rows, position
    )
    return sparse.csr_matrix((data, indices, indptr), shape=(len(rows), len(columns)))


def _columns(block, rows):
    return active_columns(block.indptr, block.indices, rows, block.shape[1])


def _feature_scale(count, total, scaling):
    """Return the factors of features that occur with weight `count`."""
    if scaling is None:
        return np.ones(len(count))
    # A feature without occurrences has no row in any projection.
    return np.sqrt(total / np.where(count > 0, count + scaling, 1.0))


def _scaled(block, scale):
    block.data *= scale[block.indices]
    return block


def _scaled_rows(block, share):
    data = block.data * np.repeat(share, np.diff(block.indptr))
    return sparse.csr_matrix((data, block.indices, block.indptr), shape=block.shape)


def _squared_norms(block):
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    return np.bincount(row, weights=block.data**2, minlength=block.shape[0])


class _FactorList:
    """Factors diag(share)Φ and Ψ of Ω^a in memory."""

    def __init__(self):
        self._factors, self._transposed = [], None

    def append(self, phi, psi):
        """Keep the factors of some nodes."""
        self._factors.append((phi, psi))

    def __iter__(self):
        """Yield diag(share)Φ and Ψ of each part."""
        return iter(self._factors)

    def transposed(self):
        """Yield the transposes of both for each part."""
        if self._transposed is None:
            self._transposed = [
                (phi.T.tocsr(), psi.T.tocsr()) for phi, psi in self._factors
            ]
        return iter(self._transposed)


class _FactorFiles:
    """Factors diag(share)Φ and Ψ of Ω^a in files that are mapped for a product.

    Memory holds one part of the nodes at a time, and vectors over features.
    """

    def __init__(self, spool):
        self._spool, self._kept, self._held = spool, [], []

    def append(self, phi, psi):
        """Keep the factors of some nodes, which are written once they fill a part."""
        self._held.append((phi, psi))
        if sum(phi.nnz + psi.nnz for phi, psi in self._held) >= _PART_ENTRIES:
            self._write()

    def _write(self):
        factors = [
            sparse.vstack(side, format="csr") for side in zip(*self._held, strict=True)
        ]
        self._kept.append(self._spool.keep(factors))
        self._held = []

    def __iter__(self):
        """Yield diag(share)Φ and Ψ of each part."""
        if self._held:
            self._write()
        for factors in self._kept:
            yield factors.load(mmap_mode="r")

    def transposed(self):
        """Yield the transposes of both for each part."""
        return ((phi.T, psi.T) for phi, psi in self)


def _svd(factors, shape, k, solver, seed):
    """Leading singular triplets of Φᵀ diag(share) Ψ, decreasing, signs fixed."""
    if k == 0:
        return np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0))
    if is_small(shape, k):
        omega = reduce(add, ((phi.T @ psi).toarray() for phi, psi in factors))
        return _significant(*leading_triplets(omega, k, "dense"), k)
    if solver == "arpack":
        try:
            triplets = leading_triplets(_operator(factors, shape), k, "arpack")
            return _significant(*triplets, k)
        except ArpackNoConvergence:
            seed = 0
    omega = reduce(add, (phi.T @ psi for phi, psi in factors))
    triplets = leading_triplets(omega, k, "randomized", random_state=seed)
    return _significant(*triplets, k)


def _operator(factors, shape):
    """Products with Ω^a, which is never formed."""

    def forward(x):
        pairs = zip(factors, factors.transposed(), strict=True)
        return reduce(add, (phi_t @ (psi @ x) for (_, psi), (phi_t, _) in pairs))

    def backward(x):
        pairs = zip(factors, factors.transposed(), strict=True)
        return reduce(add, (psi_t @ (phi @ x) for (phi, _), (_, psi_t) in pairs))

    return LinearOperator(
        shape,
        matvec=forward,
        rmatvec=backward,
        matmat=forward,
        rmatmat=backward,
        dtype=np.float64,
    )


def _significant(u, s, vt, k):
    """At most k triplets whose singular values are above rounding, signs fixed."""
    noise = s.max() * max(len(u), vt.shape[1]) * np.finfo(float).eps
    k = min(k, int(np.sum(s > noise)))
    u, vt = svd_flip(u[:, :k], vt[:k])
    return u, s[:k], vt.T


def numerical_rank(singular_values, tol):
    """Number of singular values above a fraction of the largest one.

    Parameters
    ----------
    singular_values : ndarray of float64
        Decreasing.
    tol : float
        The fraction.

    Returns
    -------
    int
    """
    return int(np.sum(singular_values > tol * singular_values[:1]))


def state_number(singular_values, count, m_max, rule, threshold=None):
    """Number of states of one nonterminal by a rule of ``SpectralLPCFG``.

    Parameters
    ----------
    singular_values : ndarray of float64, shape (k,)
        The leading singular values, decreasing and positive.
    count : float
        Number of nodes of the nonterminal.
    m_max : int
        Most states; `singular_values` beyond them are not used.
    rule : {"energy", "gap", "ramp"}
        Name of the rule.
    threshold : float, default=None
        Its parameter; that of ``STATE_RULES`` where None.

    Returns
    -------
    m : int
        At least 1.
    """
    values = np.asarray(singular_values, dtype=float)[:m_max]
    if len(values) < 2:
        return 1
    function, default = STATE_RULES[rule]
    return function(values, count, m_max, default if threshold is None else threshold)


def _energy(values, count, m_max, share):
    energy = np.cumsum(values**2)
    return min(len(values), 1 + int(np.sum(energy < share * energy[-1])))


def _gap(values, count, m_max, least):
    if len(values) < m_max:
        # The next singular value is 0, which is the widest gap.
        return len(values)
    ratios = values[:-1] / values[1:]
    widest = int(np.argmax(ratios))
    return widest + 1 if ratios[widest] >= least else len(values)


def _ramp(values, count, m_max, share):
    low, high = _RAMP
    height = 1 + (m_max - 1) * np.clip((count - low) / (high - low), 0.0, 1.0)
    return min(numerical_rank(values, share), round(float(height)))


#: Singular vectors to compute where their values choose the number of states.
M_MAX = 16
#: Rules by name, each with its default threshold.
STATE_RULES = {"energy": (_energy, 0.95), "gap": (_gap, 3.0), "ramp": (_ramp, 0.01)}


def sigma_rows(projections, m):
    """Singular values by nonterminal, 1 after the last one.

    Parameters
    ----------
    projections : list of Projection
        One per nonterminal.
    m : ndarray of int64
        Their numbers of states.

    Returns
    -------
    ndarray of float64, shape (n_nonterminals, largest m)
    """
    sigma = np.ones((len(m), int(max(m, default=1))))
    for row, projection, k in zip(sigma, projections, m, strict=True):
        values = projection.singular_values[:k]
        row[: len(values)] = values
    return sigma
