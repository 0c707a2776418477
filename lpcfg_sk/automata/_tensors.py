"""Transition tensors of tree automata: dense, by coordinates, and in CP form.

All three know the same few operations, and everything an automaton computes is
built from them: ``apply`` (one bottom-up step for many nodes at once),
``contract`` (the step of a Gram matrix), ``project`` (a change of basis) and the
factored form ``left``/``right``/``combine`` that charts sum over split points.
"""

import numpy as np

from lpcfg_sk.automata._tensor_cp import CPTensor
from lpcfg_sk.automata._tensor_dense import DenseTensor
from lpcfg_sk.automata._tensor_sparse import SparseTensor

__all__ = [
    "CPTensor",
    "DenseTensor",
    "SparseTensor",
    "add",
    "as_tensor",
    "direct_sum",
    "hadamard",
]

#: Above this share of non-zeros a tensor is cheaper to keep dense.
_DENSE_SHARE = 0.1


def as_tensor(value, n):
    """Read one transition tensor in any of its three forms.

    Parameters
    ----------
    value : array-like of shape (n, n, n), tuple or tensor
        A dense array; coordinates ``((i, j, k), weight)`` or
        ``(i, j, k, weight)``; CP factors ``(A, B, C)``, three n × R arrays.
    n : int
        Number of states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if isinstance(value, DenseTensor | SparseTensor | CPTensor):
        tensor = value
    elif isinstance(value, tuple) and len(value) in (2, 4):
        tensor = _from_coordinates(value, n)
    elif isinstance(value, tuple) and len(value) == 3 and _are_factors(value, n):
        tensor = CPTensor(*(np.array(factor, dtype=np.float64) for factor in value))
    else:
        array = _dense_array(value)
        if array.shape != (n, n, n):
            raise ValueError(
                f"T should have shape {(n, n, n)} to match the {n} initial weights "
                f"in alpha, or be coordinates (i, j, k, weight), or three CP factors "
                f"of shape ({n}, R); got shape {array.shape}."
            )
        tensor = DenseTensor(array)
    if tensor.n != n:
        raise ValueError(
            f"T is over {tensor.n} states, but alpha has {n} initial weights."
        )
    for name, array in tensor.arrays().items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"T holds nan or infinity (in {name!r}).")
    return tensor


def _dense_array(value):
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "T should be an n × n × n array, coordinates (i, j, k, weight), or three "
            f"CP factors of one shape (n, R); it cannot be read as numbers: {error}."
        ) from None


def _are_factors(value, n):
    shapes = [np.shape(f) for f in value]
    return all(len(s) == 2 and s[0] == n for s in shapes) and len(set(shapes)) == 1


def _from_coordinates(value, n):
    if len(value) == 2 and len(value[0]) == 3:
        (i, j, k), weight = value
    elif len(value) == 4:
        i, j, k, weight = value
    else:
        raise ValueError(
            "T is a pair, but not one of coordinates ((i, j, k), weight); give a dense "
            "T as an array."
        )
    index = [np.asarray(a) for a in (i, j, k)]
    weight = np.asarray(weight, dtype=np.float64)
    if any(a.ndim != 1 or a.shape != weight.shape for a in index):
        raise ValueError(
            "Sparse coordinates of T should be four arrays of one length, (i, j, k, "
            f"weight); got shapes {[a.shape for a in index]} and {weight.shape}."
        )
    for name, a in zip("ijk", index, strict=True):
        if a.size and (a.dtype.kind not in "iu" or a.min() < 0 or a.max() >= n):
            raise ValueError(
                f"Coordinate {name} of T should hold integers from 0 to {n - 1}."
            )
    return SparseTensor(*index, weight, n)


def direct_sum(first, second):
    """Tensor of two automata side by side, block-diagonal in all three modes.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
        Over n + n' states.
    """
    if first.kind == second.kind == "cp":
        factors = []
        for f, g in zip(
            (first.a, first.b, first.c), (second.a, second.b, second.c), strict=True
        ):
            block = np.zeros((len(f) + len(g), f.shape[1] + g.shape[1]))
            block[: len(f), : f.shape[1]] = f
            block[len(f) :, f.shape[1] :] = g
            factors.append(block)
        return CPTensor(*factors)
    n = first.n + second.n
    parts = [first.entries(), second.entries()]
    index = [
        np.concatenate([parts[0][mode], parts[1][mode] + np.int32(first.n)])
        for mode in range(3)
    ]
    weight = np.concatenate([parts[0][3], parts[1][3]])
    tensor = SparseTensor(*index, weight, n)
    if tensor.weight.size > _DENSE_SHARE * n**3:
        return DenseTensor(tensor.to_dense())
    return tensor


def add(tensors):
    """Elementwise sum of tensors over the same states.

    Parameters
    ----------
    tensors : sequence of tensors
        At least one.

    Returns
    -------
    DenseTensor, SparseTensor or CPTensor
    """
    if len(tensors) == 1:
        return tensors[0]
    kinds = {t.kind for t in tensors}
    if kinds == {"cp"}:
        return CPTensor(
            *(np.hstack([getattr(t, f) for t in tensors]) for f in ("a", "b", "c"))
        )
    if kinds == {"sparse"}:
        parts = [(t.i, t.j, t.k, t.weight) for t in tensors]
        return SparseTensor(
            *(np.concatenate(column) for column in zip(*parts, strict=True)),
            tensors[0].n,
        )
    return DenseTensor(sum(t.to_dense() for t in tensors))


def hadamard(first, second):
    """Tensor of the automaton that computes the product of two functions.

    Parameters
    ----------
    first, second : DenseTensor, SparseTensor or CPTensor
        Tensors over n and n' states.

    Returns
    -------
    SparseTensor
        The Kronecker product, over n · n' states.
    """
    *index, weight = first.entries()
    *other_index, other_weight = second.entries()
    joint = [
        np.add.outer(a.astype(np.int64) * second.n, b).ravel()
        for a, b in zip(index, other_index, strict=True)
    ]
    weight = np.multiply.outer(weight, other_weight).ravel()
    return SparseTensor(*joint, weight, first.n * second.n)
