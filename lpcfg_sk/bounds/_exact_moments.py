"""Moments of the features of a known L-PCFG, with which the bounds are evaluated."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from lpcfg_sk._ragged import offsets
from lpcfg_sk.lpcfg import posterior_vectors
from lpcfg_sk.treebank import check_treebank

_SIDES = ("inside", "outside")


class FeatureMoments(NamedTuple):
    """Moments of one nonterminal, what :func:`grammar_moments` returns for each.

    Attributes
    ----------
    I, J : ndarray of float64, shapes (d, m) and (d', m)
        Mean inside and outside features of the nodes in each latent state.
    gamma : ndarray of float64, shape (m,)
        Probabilities γ^a of the states.
    Omega : ndarray of float64, shape (d, d')
        Mean product E[φψᵀ | a] of the features of a node.
    sigma, xi : float
        The m-th singular values of Ω^a and of I^a.

    Examples
    --------
    >>> from lpcfg_sk.bounds import grammar_moments
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> moments = grammar_moments(make_lpcfg(m=2, random_state=0))["A0"]
    >>> moments.I.shape[1], round(float(moments.gamma.sum()), 6)
    (2, 1.0)
    """

    I: np.ndarray
    J: np.ndarray
    gamma: np.ndarray
    Omega: np.ndarray
    sigma: float
    xi: float


def grammar_moments(grammar, trees=None):
    r"""Exact Ω, I, J, γ, σ, ξ of a known grammar (definition 5, eq. 21, theorem 8).

    Parameters
    ----------
    grammar : LPCFG
        A probabilistic grammar.
    trees : Treebank, default=None
        All trees of the grammar, or all but a negligible rest, once each, with the
        blocks of :class:`InsideFeatures` and :class:`OutsideFeatures`: any features
        φ and ψ. Where None, φ is the indicator of the rule at a node, and ψ that of
        the rule above it with the node's side, or of being a root; their moments
        have a closed form and the grammar may have infinitely many trees.

    Returns
    -------
    moments : dict of str to FeatureMoments
        By nonterminal. Smallest σ and ξ are arguments of
        :func:`spectral_sample_size`.

    Notes
    -----
    A node is drawn from all nodes of all trees. With e(a, h) the expected number of
    nodes of nonterminal a in state h, which solves e = π + eM for the expected numbers
    M of children,

    .. math::
        γ^a_h ∝ e(a, h), \quad
        I^a_{r,h} = \sum_{h_2, h_3} t(r, h_2, h_3 | h), \quad
        J^a_{(r, left), h} = \frac{1}{e(a, h)} \sum_{h_1, h_3} e(h_1) t(r, h, h_3 | h_1)

    and with any features :math:`Ω^a = I^a \operatorname{diag}(γ^a) (J^a)^⊤`. Norms of
    these indicators are one, as the theorem takes them.

    Examples
    --------
    >>> from lpcfg_sk.bounds import grammar_moments
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> moments = grammar_moments(make_lpcfg(m=2, random_state=0))
    >>> min(value.sigma for value in moments.values()) > 0
    True
    """
    if not grammar.is_probabilistic:
        raise ValueError(
            "grammar_moments takes a grammar whose parameters are probabilities; "
            "give one of EMLPCFG, PivotLPCFG or LPCFG.normalized()"
        )
    if trees is None:
        return _indicator_moments(grammar)
    trees = check_treebank(
        trees, estimator="grammar_moments", parsed=True, binary=True, blocks=_SIDES
    )
    p = np.exp(grammar.log_prob(trees))
    if abs(p.sum() - 1) > 1e-6:
        raise ValueError(
            f"the probabilities of the {len(trees)} trees sum to {p.sum():.6g}, not 1; "
            "give every tree of the grammar once"
        )
    label, _ = grammar.encode(trees)
    weight = np.repeat(p, np.diff(trees.node_offsets))[:, None]
    weight = weight * posterior_vectors(grammar, trees)
    phi, psi = (csr_matrix(trees.blocks[side]) for side in _SIDES)
    moments = {}
    for a, name in enumerate(grammar.nonterminals):
        nodes, m = np.flatnonzero(label == a), grammar.m[name]
        expected = weight[nodes, :m].sum(axis=0)
        I, J = (
            _ratio(block[nodes].T @ weight[nodes, :m], expected) for block in (phi, psi)
        )
        moments[name] = _moments(I, J, expected)
    return moments


def least_coefficient(grammar, trees=None):
    r"""Exact Λ of a known grammar (theorem 3 of the ACL 2012 paper).

    Parameters
    ----------
    grammar : LPCFG
        A probabilistic grammar.
    trees : Treebank, default=None
        As in :func:`grammar_moments`: what φ and ψ are.

    Returns
    -------
    Lambda : float
        Smallest absolute value of an entry of c¹_a, d^∞_{a → x} and D^{a → b c}, over
        the rules and roots that the grammar has: the argument `Lambda` of
        :func:`spectral_ratio_sample_size`.

    Notes
    -----
    With the singular vectors U^a and V^a of Ω^a, :math:`G^a = (U^a)^⊤ I^a` and
    :math:`K^a = (V^a)^⊤ J^a`, equations 17, 18 and 20 are

    .. math::
        D^{a → b c}_{ijk} &= \sum_{h_1, h_2, h_3} K^a_{i h_1} γ^a_{h_1}
        t(a → b\,c, h_2, h_3 | h_1) G^b_{j h_2} G^c_{k h_3} \\
        d^∞_{a → x} &= K^a \operatorname{diag}(γ^a) q_{a → x}, \quad c^1_a = G^a π^a

    The paper takes entries of (Σ^a)⁻¹, too. That matrix is diagonal: off its diagonal
    it is zero, which would make the theorem empty for m > 1, and on it are the inverse
    singular values, at least 1 under the theorem's assumptions. It is left out.

    Examples
    --------
    >>> from lpcfg_sk.bounds import least_coefficient
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> 0 < least_coefficient(make_lpcfg(m=2, random_state=0)) < 1
    True
    """
    G, K = {}, {}
    for a, (I, J, gamma, Omega, sigma, _) in grammar_moments(grammar, trees).items():
        m = len(gamma)
        left, singular, right = np.linalg.svd(Omega, full_matrices=False)
        if sigma <= 1e-12 * singular[0]:
            raise ValueError(
                f"the features do not tell the {m} states of {a!r} apart: the rank of "
                "its Ω is lower; give trees with other features"
            )
        G[a], K[a] = left[:, :m].T @ I, (right[:m] @ J) * gamma
    coefficients = [G[a] @ vector for a, vector in grammar.root.items()]
    coefficients += [K[a] @ vector for (a, _), vector in grammar.lexical.items()]
    coefficients += [
        np.einsum("ix,xyz,jy,kz->ijk", K[a], tensor, G[b], G[c], optimize=True)
        for (a, b, c), tensor in grammar.binary.items()
    ]
    return float(min(np.abs(values).min() for values in coefficients))


def _indicator_moments(grammar):
    """Moments of the rule at a node and of the rule above it."""
    names, m = grammar.nonterminals, grammar.m
    first = dict(zip(names, offsets([m[a] for a in names])[:-1].tolist(), strict=True))
    state = {a: slice(first[a], first[a] + m[a]) for a in names}
    n_states = sum(m.values())
    root, step = np.zeros(n_states), np.zeros((n_states, n_states))
    for a, vector in grammar.root.items():
        root[state[a]] = vector
    for (a, b, c), tensor in grammar.binary.items():
        step[state[a], state[b]] += tensor.sum(axis=2)
        step[state[a], state[c]] += tensor.sum(axis=1)
    radius = np.abs(np.linalg.eigvals(step)).max()
    if radius >= 1 - 1e-12:
        raise ValueError(
            f"trees of the grammar are infinitely large in expectation (spectral "
            f"radius {radius:.6g})"
        )
    expected = np.linalg.solve(np.eye(n_states) - step.T, root)
    inside, outside = ({a: [] for a in names} for _ in range(2))
    for (a, b, c), tensor in grammar.binary.items():
        inside[a].append(tensor.sum(axis=(1, 2)))
        below = np.tensordot(expected[state[a]], tensor, axes=1)
        outside[b].append(below.sum(axis=1))
        outside[c].append(below.sum(axis=0))
    for (a, _), vector in grammar.lexical.items():
        inside[a].append(vector)
    for a, vector in grammar.root.items():
        outside[a].append(vector)
    return {
        a: _moments(
            np.array(inside[a]),
            _ratio(np.array(outside[a]), expected[state[a]]),
            expected[state[a]],
        )
        for a in names
    }


def _moments(I, J, expected):
    gamma = expected / expected.sum()
    # The triangular factors have the singular values, and are m × m.
    small_I, small_J = (np.linalg.qr(x, mode="r") for x in (I, J))
    return FeatureMoments(
        I,
        J,
        gamma,
        Omega=(I * gamma) @ J.T,
        sigma=_singular((small_I * gamma) @ small_J.T, len(gamma)),
        xi=_singular(small_I, len(gamma)),
    )


def _ratio(sums, totals):
    """Means by column; a state that never occurs has zeros."""
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


def _singular(matrix, m):
    """The m-th singular value, 0 where there are fewer."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[m - 1]) if len(values) >= m else 0.0
