"""Decomposition of a nonterminal whose features are read part by part."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from lpcfg_sk.spectral._decomposition import (
    Projection,
    is_small,
    leading_triplets,
    squared_norms,
)

__all__ = ["decompose_large"]


class _Part(NamedTuple):
    """Where to read some of the nodes of a nonterminal, and what of it is used."""

    stored: object
    label: int
    n_features: tuple
    columns: tuple
    scales: tuple
    total: float

    def matrices(self):
        """Φ diag(share) and Ψ over the columns that occur, scaled."""
        *blocks, weight = self.stored.load(self.label, self.n_features)
        local = []
        for block, columns, scale in zip(
            blocks, self.columns, self.scales, strict=True
        ):
            indices = np.searchsorted(columns, block.indices)
            data = block.data.astype(np.float64) * scale[indices]
            local.append(
                sparse.csr_matrix(
                    (data, indices, block.indptr),
                    shape=(block.shape[0], len(columns)),
                )
            )
        return (*local, weight / self.total)


def decompose_large(stored, label, n_features, n_vectors, scales):
    """Singular value decomposition of one Ω^a, by passes over the files.

    Memory is that of the largest shard's nodes of the nonterminal, and of vectors
    over features.

    Parameters
    ----------
    stored : list
        The features of each shard.
    label : int
        The nonterminal.
    n_features : sequence of int
        Number of inside and of outside features.
    n_vectors : int
        Number of singular vectors wanted.
    scales : pair of ndarray
        Scaling of the features.

    Returns
    -------
    projection : Projection
    """
    used = [np.zeros(n, dtype=bool) for n in n_features]
    total, n_nodes = 0.0, 0
    for part in stored:
        *blocks, weight = part.load(label, n_features)
        for block, mask in zip(blocks, used, strict=True):
            mask[block.indices] = True
        total += weight.sum()
        n_nodes += len(weight)
    columns = tuple(np.flatnonzero(mask) for mask in used)
    local_scales = tuple(s[c] for s, c in zip(scales, columns, strict=True))
    parts = [
        _Part(part, label, tuple(n_features), columns, local_scales, total)
        for part in stored
    ]
    shape = tuple(len(c) for c in columns)
    k = min(int(n_vectors), n_nodes, *shape)

    if is_small(shape, k):
        u, s, v = leading_triplets(_sum(parts, shape), k)
    else:
        u, s, v = leading_triplets(_operator(parts, shape), k)
    norms = np.zeros(3)
    for part in parts:
        phi, psi, share = part.matrices()
        squares = squared_norms(psi)
        norms[0] = max(norms[0], squared_norms(phi).max(initial=0.0))
        norms[1] = max(norms[1], squares.max(initial=0.0))
        norms[2] += share @ squares
    phi_norm, psi_norm, psi_rms = np.sqrt(norms).tolist()
    return Projection(
        inside=columns[0],
        outside=columns[1],
        U=u * local_scales[0][:, None],
        V=v * local_scales[1][:, None],
        singular_values=s,
        phi_norm=phi_norm,
        psi_norm=psi_norm,
        psi_rms=psi_rms,
    )


def _sum(parts, shape):
    """Ω^a, dense."""
    omega = np.zeros(shape)
    for part in parts:
        phi, psi, share = part.matrices()
        omega += (phi.T @ sparse.diags_array(share) @ psi).toarray()
    return omega


def _operator(parts, shape):
    """Products with Ω^a, which is never formed."""

    def forward(x):
        result = 0.0
        for part in parts:
            phi, psi, share = part.matrices()
            result = result + phi.T @ _by_row(share, psi @ x)
        return result

    def backward(x):
        result = 0.0
        for part in parts:
            phi, psi, share = part.matrices()
            result = result + psi.T @ _by_row(share, phi @ x)
        return result

    return LinearOperator(
        shape,
        matvec=forward,
        rmatvec=backward,
        matmat=forward,
        rmatmat=backward,
        dtype=np.float64,
    )


def _by_row(share, vectors):
    return share * vectors if vectors.ndim == 1 else share[:, None] * vectors
