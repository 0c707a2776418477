"""Decomposition of a nonterminal whose features are read part by part."""

import glob
import os
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


#: Features in a file that a product reads at a time.
_PART_ENTRIES = 2**20


class _Part(NamedTuple):
    """Some of the nodes of a nonterminal, in files that are mapped for a product."""

    path: str
    shapes: tuple

    @classmethod
    def store(cls, path, blocks, share):
        """Write Φ and Ψ over the columns that occur, scaled, and the shares."""
        for side, block in enumerate(blocks):
            np.save(f"{path}-{side}-data.npy", block.data)
            np.save(f"{path}-{side}-indices.npy", block.indices.astype(np.int32))
            np.save(f"{path}-{side}-indptr.npy", block.indptr)
        np.save(f"{path}-share.npy", share)
        return cls(path, tuple(block.shape for block in blocks))

    def load(self):
        """Map Φ, Ψ and the shares."""
        blocks = []
        for side, shape in enumerate(self.shapes):
            parts = tuple(
                np.load(f"{self.path}-{side}-{name}.npy", mmap_mode="r")
                for name in ("data", "indices", "indptr")
            )
            blocks.append(sparse.csr_matrix(parts, shape=shape, copy=False))
        return (*blocks, np.load(f"{self.path}-share.npy"))

    def remove(self):
        """Remove the files."""
        for path in glob.glob(f"{glob.escape(self.path)}-*.npy"):
            os.remove(path)


def _local(block, columns, scale):
    """A block over the columns that occur, scaled."""
    indices = np.searchsorted(columns, block.indices)
    data = block.data.astype(np.float64) * scale[indices]
    return sparse.csr_matrix(
        (data, indices, block.indptr), shape=(block.shape[0], len(columns))
    )


def _parts(stored, label, n_features, columns, scales, total):
    """Put the nodes of several shards together, as long as they are few."""
    held, n_entries, parts = [], 0, []
    for i, shard in enumerate(stored):
        held.append(shard.load(label, n_features))
        n_entries += held[-1][0].nnz + held[-1][1].nnz
        if n_entries < _PART_ENTRIES and i < len(stored) - 1:
            continue
        blocks = [
            _local(sparse.vstack([h[side] for h in held], format="csr"), *local)
            for side, local in enumerate(zip(columns, scales, strict=True))
        ]
        share = np.concatenate([h[2] for h in held]) / total
        parts.append(_Part.store(shard.path(f"large-{label}"), blocks, share))
        held, n_entries = [], 0
    return parts


def decompose_large(stored, label, n_features, n_vectors, scales):
    """Singular value decomposition of one Ω^a, by passes over the files.

    Memory is that of a part of the nodes, and of vectors over features.

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
    parts = _parts(stored, label, n_features, columns, local_scales, total)
    shape = tuple(len(c) for c in columns)
    k = min(int(n_vectors), n_nodes, *shape)

    if is_small(shape, k):
        u, s, v = leading_triplets(_sum(parts, shape), k)
    else:
        u, s, v = leading_triplets(_operator(parts, shape), k)
    norms = np.zeros(3)
    for part in parts:
        phi, psi, share = part.load()
        squares = squared_norms(psi)
        norms[0] = max(norms[0], squared_norms(phi).max(initial=0.0))
        norms[1] = max(norms[1], squares.max(initial=0.0))
        norms[2] += share @ squares
        part.remove()
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
        phi, psi, share = part.load()
        omega += (phi.T @ sparse.diags_array(share) @ psi).toarray()
    return omega


def _operator(parts, shape):
    """Products with Ω^a, which is never formed."""

    def forward(x):
        result = 0.0
        for part in parts:
            phi, psi, share = part.load()
            result = result + phi.T @ _by_row(share, psi @ x)
        return result

    def backward(x):
        result = 0.0
        for part in parts:
            phi, psi, share = part.load()
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
