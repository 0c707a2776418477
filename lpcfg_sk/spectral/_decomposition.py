from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, svds
from sklearn.utils.extmath import randomized_svd, svd_flip

from lpcfg_sk._kernels._moments import active_columns, local_rows, project_rows
from lpcfg_sk._parallel import cut_by_work, map_chunks

#: Below this many multiplications a dense SVD is quicker than ARPACK.
_DENSE_WORK = 2e7


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
    inside, outside, label, weight, n_vectors, *, scaling, solver, seed, n_jobs=None
):
    """Singular value decomposition of every Ω^a (figure 8 of the paper).

    Parameters
    ----------
    inside, outside : CSR matrix, shapes (n_nodes, d) and (n_nodes, d')
        Features φ and ψ of the nodes.
    label : ndarray of int32, shape (n_nodes,)
        Nonterminal of each node.
    weight : ndarray of float64, shape (n_nodes,)
        Weight of each node in the means.
    n_vectors : ndarray of int64, shape (n_nonterminals,)
        Number of singular vectors wanted for each nonterminal.
    scaling : float or None
        Feature i is multiplied by √(M / (count_i + scaling)).
    solver : {"arpack", "randomized"}
        How large problems are solved; small ones are always solved densely.
    seed : int or None
        For the randomized solver.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    projections : list of Projection
        One for each nonterminal, with at most the wanted number of vectors.
    """
    scales = [_scale(block, weight, scaling) for block in (inside, outside)]
    order = np.argsort(label, kind="stable")
    order = order[weight[order] > 0]
    bounds = np.searchsorted(label[order], np.arange(len(n_vectors) + 1))

    def chunk(begin, end):
        return [one(a) for a in range(begin, end)]

    def one(a):
        rows = order[bounds[a] : bounds[a + 1]]
        return decompose_label(
            inside, outside, rows, weight[rows], n_vectors[a], scales, solver, seed
        )

    chunks = cut_by_work(np.diff(bounds) + 1)
    return [p for part in map_chunks(chunk, chunks, n_jobs=n_jobs) for p in part]


def decompose_label(inside, outside, rows, weight, n_vectors, scales, solver, seed):
    """Singular value decomposition of the Ω^a of one nonterminal.

    Parameters
    ----------
    inside, outside : CSR matrix
        Features of nodes.
    rows : ndarray of int64
        Nodes of the nonterminal.
    weight : ndarray of float64, shape (len(rows),)
        Their weights.
    n_vectors : int
        Number of singular vectors wanted.
    scales : pair of ndarray
        Scaling of the features, see :func:`feature_scale`.
    solver, seed
        See :func:`decompose`.

    Returns
    -------
    projection : Projection
    """
    phi_scale, psi_scale = scales
    share = weight / max(weight.sum(), np.finfo(float).tiny)
    columns, phi = _local(inside, rows, phi_scale)
    other_columns, psi = _local(outside, rows, psi_scale)
    k = min(int(n_vectors), len(rows), len(columns), len(other_columns))
    u, s, v = _svd(phi, psi, share, k, solver, seed)
    return Projection(
        inside=columns,
        outside=other_columns,
        U=u * phi_scale[columns, None],
        V=v * psi_scale[other_columns, None],
        singular_values=s,
        phi_norm=float(np.sqrt(squared_norms(phi).max(initial=0.0))),
        psi_norm=float(np.sqrt(squared_norms(psi).max(initial=0.0))),
        psi_rms=float(np.sqrt(share @ squared_norms(psi))),
    )


def project(block, label, projections, side, m):
    """Project the features of all nodes.

    Parameters
    ----------
    block : CSR matrix, shape (n_nodes, n_features)
        Features.
    label : ndarray of int32, shape (n_nodes,)
        Nonterminal of each node, -1 for unknown ones.
    projections : list of Projection
        One for each nonterminal.
    side : {"inside", "outside"}
        y = Uᵀφ, or z = (Σ^a)⁻¹Vᵀψ, where Σ^a = UᵀΩ^aV is diagonal.
    m : ndarray of int64, shape (n_nonterminals,)
        Number of leading singular vectors to use.

    Returns
    -------
    vectors : ndarray of float64, shape (n_nodes, max(m))
        Row i has ``m[label[i]]`` values, zeros after them. A nonterminal without
        singular vectors has the constant 1.
    """
    vectors = np.zeros((block.shape[0], int(max(m, default=1))))
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(len(m) + 1))
    number = np.full(block.shape[1], -1, dtype=np.int32)
    for a, projection in enumerate(projections):
        rows = order[bounds[a] : bounds[a + 1]]
        if not len(rows):
            continue
        if not len(projection.singular_values):
            vectors[rows, 0] = 1.0
            continue
        if side == "inside":
            columns, weights = projection.inside, projection.U[:, : m[a]]
        else:
            columns = projection.outside
            weights = projection.V[:, : m[a]] / projection.singular_values[: m[a]]
        number[columns] = np.arange(len(columns), dtype=np.int32)
        project_rows(
            block.indptr,
            block.indices,
            block.data,
            rows,
            number,
            np.ascontiguousarray(weights),
            vectors,
        )
        number[columns] = -1
    return vectors


def _scale(block, weight, scaling):
    entry_weight = np.repeat(weight, np.diff(block.indptr))
    count = np.bincount(block.indices, weights=entry_weight, minlength=block.shape[1])
    return feature_scale(count, weight.sum(), scaling)


def feature_scale(count, total, scaling):
    """Factors by which features are multiplied before the decomposition.

    Parameters
    ----------
    count : ndarray of float64
        Weight of the nodes that have each feature.
    total : float
        Weight of all nodes.
    scaling : float or None
        See :func:`decompose`.

    Returns
    -------
    ndarray of float64
    """
    if scaling is None:
        return np.ones(len(count))
    # A feature without occurrences has no row in any projection.
    return np.sqrt(total / np.where(count > 0, count + scaling, 1.0))


def _local(block, rows, scale):
    """The rows of a block over the columns that they use, scaled."""
    columns = active_columns(block.indptr, block.indices, rows, block.shape[1])
    number = np.full(block.shape[1], -1, dtype=np.int32)
    number[columns] = np.arange(len(columns), dtype=np.int32)
    indptr, indices, data = local_rows(
        block.indptr, block.indices, block.data, rows, number
    )
    data *= scale[columns][indices]
    local = sparse.csr_matrix((data, indices, indptr), shape=(len(rows), len(columns)))
    return columns, local


def squared_norms(local):
    """Squared norms of the rows of a sparse matrix."""
    row = np.repeat(np.arange(local.shape[0]), np.diff(local.indptr))
    return np.bincount(row, weights=local.data**2, minlength=local.shape[0])


def _svd(phi, psi, share, k, solver, seed):
    """Leading singular triplets of Φᵀ diag(share) Ψ, decreasing, signs fixed."""
    shape = (phi.shape[1], psi.shape[1])
    if k == 0:
        return np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0))
    weighted = sparse.csr_matrix(
        (phi.data * np.repeat(share, np.diff(phi.indptr)), phi.indices, phi.indptr),
        shape=phi.shape,
    ).T
    if is_small(shape, k):
        omega = (weighted @ psi).toarray()
        u, s, vt = np.linalg.svd(omega, full_matrices=False)
    elif solver == "randomized":
        u, s, vt = _randomized(weighted, psi, k, seed)
    else:
        try:
            u, s, vt = _arpack(weighted.tocsr(), psi, k)
        except ArpackNoConvergence:
            u, s, vt = _randomized(weighted, psi, k, 0)
    return _significant(u, s, vt, k)


def is_small(shape, k):
    """Whether a matrix of this shape is decomposed densely."""
    return k >= min(shape) or min(shape) ** 2 * max(shape) <= _DENSE_WORK


def _significant(u, s, vt, k):
    """At most k triplets whose singular values are above rounding, signs fixed."""
    noise = s.max() * max(len(u), vt.shape[1]) * np.finfo(float).eps
    k = min(k, int(np.sum(s > noise)))
    u, vt = svd_flip(u[:, :k], vt[:k])
    return u, s[:k], vt.T


def _randomized(weighted, psi, k, seed):
    return randomized_svd(
        weighted @ psi,
        n_components=k,
        n_oversamples=max(10, k),
        n_iter=10,
        power_iteration_normalizer="QR",
        random_state=seed,
    )


def _arpack(weighted, psi, k):
    """Truncated SVD of the product of two sparse matrices, never formed."""
    weighted_t, psi_t = weighted.T.tocsr(), psi.T.tocsr()
    omega = LinearOperator(
        (weighted.shape[0], psi.shape[1]),
        matvec=lambda x: weighted @ (psi @ x),
        rmatvec=lambda x: psi_t @ (weighted_t @ x),
        matmat=lambda x: weighted @ (psi @ x),
        rmatmat=lambda x: psi_t @ (weighted_t @ x),
        dtype=np.float64,
    )
    return _largest(omega, k)


def leading_triplets(omega, k):
    """Leading singular triplets of a matrix, decreasing, signs fixed.

    Parameters
    ----------
    omega : LinearOperator or ndarray
        Products with a matrix and its transpose, or the matrix where it is small.
    k : int
        Number of triplets.

    Returns
    -------
    u, s, v : ndarray of float64
    """
    if isinstance(omega, np.ndarray):
        return _significant(*np.linalg.svd(omega, full_matrices=False), k)
    return _significant(*_largest(omega, k), k)


def _largest(omega, k):
    # A fixed start: the result depends on nothing but the data.
    v0 = np.ones(min(omega.shape))
    u, s, vt = svds(omega, k=k, v0=v0, solver="arpack")
    order = np.argsort(-s, kind="stable")
    return u[:, order], s[order], vt[order]
