"""Inner products and distances of the functions of two automata."""

import numpy as np

from lpcfg_sk.automata._algebra import common_words, sum_parts
from lpcfg_sk.automata._analysis import restricted, unit_of
from lpcfg_sk.automata._gram import cross_gram, tree_sum
from lpcfg_sk.automata._tensors import DenseTensor

__all__ = ["inner_product", "unit_distance"]

#: Relative squared distance below which three inner products cancel too much.
_CANCELLATION = 1e-9
#: Largest joint number of states for which a difference is solved as one automaton.
_MAX_DIFFERENCE_STATES = 160


def inner_product(first, second):
    """Sum of f(t) g(t) over all trees, in units of both automata.

    Parameters
    ----------
    first, second : WTA
        Strongly convergent automata over the same kind of trees.

    Returns
    -------
    float
        To be multiplied by `unit_of` each of the two.
    """
    parts = []
    for wta in (first, second):
        states, gram, _, unit = wta.analysis()
        alpha, tensors, _ = restricted(wta, states)
        parts.append((alpha / unit, tensors, gram.tree, states))
    (alpha1, tensors1, tree1, states1), (alpha2, tensors2, tree2, states2) = parts
    if len(alpha1) == 0 or len(alpha2) == 0:
        return 0.0
    if first is second:
        return float(alpha1 @ tree1 @ alpha1)
    tensors1, tensors2 = _same_labels(first, tensors1, second, tensors2)
    _, (omega1, omega2), _ = common_words(first, second, literal=True)
    units = [_units(tree) for tree in (tree1, tree2)]
    cross = cross_gram(
        tensors1, omega1[:, states1], tensors2, omega2[:, states2], units
    )
    return float(alpha1 @ cross @ alpha2)


def _units(gram):
    """Square roots of the diagonal, 1 where a state has no weight."""
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    return np.where(size > 0, size, 1.0)


def _same_labels(first, tensors1, second, tensors2):
    """Tensors of both automata for the node labels that they share."""
    if first.labels is None and second.labels is None:
        return tensors1, tensors2
    place = {label: i for i, label in enumerate(second.labels)}
    shared = [i for i, label in enumerate(first.labels) if label in place]
    return (
        [tensors1[i] for i in shared],
        [tensors2[place[first.labels[i]]] for i in shared],
    )


def unit_distance(first, second, method):
    """Root of the sum of (f(t) − g(t))² over all trees, in units of the larger one.

    Parameters
    ----------
    first, second : WTA
        Strongly convergent automata over the same kind of trees.
    method : {"auto", "inner", "difference"}
        See :meth:`WTA.distance`.

    Returns
    -------
    float
        To be multiplied by the larger `unit_of` of the two.
    """
    units = np.array([unit_of(first), unit_of(second)])
    units /= units.max()
    own = units**2 * [inner_product(w, w) for w in (first, second)]
    if own.min() <= 0:
        return np.sqrt(max(own.max(), 0.0))
    if method != "difference":
        value = own.sum() - 2 * units.prod() * inner_product(first, second)
        if method == "inner" or value > _CANCELLATION * own.max():
            return np.sqrt(max(value, 0.0))
    small = [w.minimize() for w in (first, second)]
    if (
        method == "auto"
        and small[0].n_states + small[1].n_states > _MAX_DIFFERENCE_STATES
    ):
        return np.sqrt(max(value, 0.0))
    return _difference(*small, max(unit_of(first), unit_of(second)))


def _difference(first, second, unit):
    """Norm of f − g in coordinates where the difference itself is small.

    With M = S_AB S_BB⁺ the states δ = ω_A(t) − M ω_B(t) and ω_B(t) compute f − g;
    all entries of the Gram matrix of δ are of the size of the difference, so
    nothing cancels.
    """
    alpha, tensors, omega, *_ = sum_parts(first, -second, literal=True)
    n, alpha = first.n_states, alpha / unit
    cross, own = _cross(first, second), second.analysis().gram.tree
    sizes = _units(own)
    inverse = np.linalg.pinv(own / np.outer(sizes, sizes), rcond=1e-10, hermitian=True)
    shift = (cross / sizes) @ inverse / sizes
    basis = np.eye(len(alpha))
    basis[:n, n:] = shift
    dual = np.eye(len(alpha))
    dual[:n, n:] = -shift
    tensors = [DenseTensor(t.to_dense()).project(dual.T, basis, basis) for t in tensors]
    gram = tree_sum(tensors, omega @ dual.T)
    alpha = basis.T @ alpha
    return np.sqrt(max(float(alpha @ gram @ alpha), 0.0))


def _cross(first, second):
    tensors = _same_labels(first, first.tensors, second, second.tensors)
    _, omegas, _ = common_words(first, second, literal=True)
    units = [_units(w.gram_matrices().tree) for w in (first, second)]
    return cross_gram(tensors[0], omegas[0], tensors[1], omegas[1], units)
