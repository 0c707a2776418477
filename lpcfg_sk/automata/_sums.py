"""The part of a tree automaton that sums over all trees."""

import numpy as np

from lpcfg_sk.automata._analysis import (
    analyse,
    balanced,
    canonical,
    exact_minimum,
    in_ordinary_units,
    truncated,
    unit_of,
)
from lpcfg_sk.automata._distance import inner_product, unit_distance
from lpcfg_sk.automata._gram import GramMatrices
from lpcfg_sk.exceptions import NotStronglyConvergentError

__all__ = ["SumsOverTrees"]


class SumsOverTrees:
    """Gram matrices, singular values, minimisation and distances of automata."""

    def analysis(self):
        """Gram matrices over the useful states; solved once.

        Returns
        -------
        Analysis
            Named tuple (states, gram, radius, unit).
        """
        return self._cached("analysis", lambda: analyse(self))

    def _cached(self, name, compute):
        """What is computed once; automata do not change."""
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    def gram_matrices(self):
        """Gram matrices of all contexts and of all trees (Algorithm 2).

        Returns
        -------
        GramMatrices
            Named tuple (context, tree) of n × n matrices, G_C = Σ_c α(c)α(c)ᵀ and
            G_T = Σ_t ω(t)ω(t)ᵀ. States that no tree reaches or no context observes
            play no part in f; their rows and columns are zero.

        Raises
        ------
        NotStronglyConvergentError
            If the sums diverge.
        """
        wta, c = in_ordinary_units(self)
        states, gram, _, unit = wta.analysis()
        with np.errstate(over="ignore", under="ignore"):
            gram = GramMatrices(
                gram.context * (unit / c) * (unit / c), gram.tree * c * c
            )
        if len(states) == self.n_states:
            return gram
        whole = []
        for part in gram:
            out = np.zeros((self.n_states,) * 2)
            out[np.ix_(states, states)] = part
            whole.append(out)
        return GramMatrices(*whole)

    def spectral_radius(self):
        """Spectral radius ρ(E) of the Gram iteration at its fixed point.

        Returns
        -------
        float
            Below 1 for strongly convergent automata, 0 for those without recursion;
            inf where the sum over trees has no finite value. It is that of the given
            states: hidden ones, which neither `is_convergent` nor `singular_values`
            minds, may diverge.
        """
        try:
            wta, _ = in_ordinary_units(self)
            return wta.analysis().radius
        except NotStronglyConvergentError:
            return np.inf

    @property
    def is_convergent(self):
        """Whether Σ_t |t| f(t)² is finite, as singular values and norms need."""
        try:
            canonical(self)
        except NotStronglyConvergentError:
            return False
        return True

    def singular_values(self, *, rank_tol=None):
        """Singular values of the Hankel matrix of f, largest first.

        Parameters
        ----------
        rank_tol : float, default=None
            Share of the largest value that counts as zero; rounding error where
            None.

        Returns
        -------
        ndarray of float64, shape (rank,)
            Empty for the zero function.
        """
        _check_rank_tol(rank_tol)
        _, factors = balanced(canonical(self), rank_tol)
        return np.zeros(0) if factors is None else factors.singular_values

    def minimize(self, *, rank_tol=None):
        """Make the smallest automaton of the same function, up to rounding.

        Parameters
        ----------
        rank_tol : float, default=None
            Share of the largest singular value that counts as zero. Whatever it is,
            parts of f that rounding errors of the others hide are lost: those about
            1e-8 below the others unless they have states of their own.

        Returns
        -------
        WTA
            The singular value tree automaton of f, or of a reweighted f where f is
            not strongly convergent or its weights are far from 1; one state of
            weight zero for the zero function.
        """
        _check_rank_tol(rank_tol)
        return exact_minimum(self, rank_tol)

    def truncate(self, n, *, rank_tol=None):
        """Keep the n leading states of the singular value tree automaton.

        Parameters
        ----------
        n : int
            Number of states; the rank of f is enough for f itself.
        rank_tol : float, default=None
            Share of the largest singular value that counts as zero.

        Returns
        -------
        WTA

        Raises
        ------
        NotStronglyConvergentError
            If f has no singular value decomposition.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n should be a positive number of states, got {n!r}.")
        _check_rank_tol(rank_tol)
        return truncated(canonical(self), int(n), rank_tol)

    def inner_product(self, other):
        """Sum of f(t) g(t) over all trees.

        Parameters
        ----------
        other : WTA
            Strongly convergent, as this one.

        Returns
        -------
        float
        """
        self._check_same_trees(other)
        pair = canonical(self), canonical(other)
        return inner_product(*pair) * unit_of(pair[0]) * unit_of(pair[1])

    def norm(self):
        """The ℓ2 norm of f, the root of Σ_t f(t)².

        Returns
        -------
        float
        """
        wta = canonical(self)
        return float(np.sqrt(max(inner_product(wta, wta), 0.0))) * unit_of(wta)

    def distance(self, other, *, method="auto"):
        """The ℓ2 distance of two functions, the root of Σ_t (f(t) − g(t))².

        Parameters
        ----------
        other : WTA
            Strongly convergent, as this one.
        method : {"auto", "inner", "difference"}, default="auto"
            By three inner products, which cannot tell functions apart that differ
            by less than about 1e-7 of their norm, or by the automaton of the
            difference; "auto" takes the latter where it matters and the automata
            are small enough. The unknown word is a word like any other here.

        Returns
        -------
        float
        """
        if method not in ("auto", "inner", "difference"):
            raise ValueError(
                f"method should be 'auto', 'inner' or 'difference', got {method!r}."
            )
        self._check_same_trees(other)
        pair = canonical(self), canonical(other)
        return float(unit_distance(*pair, method)) * max(map(unit_of, pair))

    def _check_same_trees(self, other):
        if not isinstance(other, SumsOverTrees):
            raise TypeError(f"expected another WTA, got {type(other).__name__}.")
        if (self.labels is None) != (other.labels is None):
            raise ValueError(
                "One automaton has a tensor for each node label and the other ignores "
                "labels; give both the same kind of transitions."
            )


def _check_rank_tol(rank_tol):
    if rank_tol is not None and not 0 <= rank_tol < 1:
        raise ValueError(
            "rank_tol should be None or a share of the largest singular value, from 0 "
            f"to below 1, got {rank_tol!r}."
        )
