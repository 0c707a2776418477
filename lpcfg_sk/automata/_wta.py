"""Weighted tree automata."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.automata._algebra import AlgebraOfFunctions
from lpcfg_sk.automata._conversion import (
    as_tensor,
    automaton_data,
    automaton_of_grammar,
    automaton_parts,
    grammar_of_automaton,
)
from lpcfg_sk.automata._sums import SumsOverTrees
from lpcfg_sk.automata._values import (
    SentenceValues,
    leaf_contexts,
    tree_condition_numbers,
    tree_log_values,
    tree_vectors,
)
from lpcfg_sk.treebank import check_treebank, figures_html

_KIND = "WTA"
_VERSION = 1


class WTA(AlgebraOfFunctions, SumsOverTrees, SentenceValues):
    """A weighted tree automaton ⟨α, T, {ω_σ}⟩ over binary trees.

    It computes f(t) = αᵀω(t) with ω(σ) = ω_σ for a leaf and
    ω((t₁, t₂)) = T(I, ω(t₁), ω(t₂)) for a node [1]_. Weights may be negative. An
    automaton is immutable.

    Parameters
    ----------
    alpha : array-like of float, shape (n,)
        Initial weights.
    T : array-like, tuple, or mapping of str to those
        Transition weights of all nodes, or of the nodes of each label (other
        labels then have weight zero): an n × n × n array; coordinates
        ``(i, j, k, weight)``; or three CP factors ``(A, B, C)``, n × R arrays.
    omega : mapping of str to array-like of shape (n,)
        Terminal weights of each word.
    unknown_word : str, default=None
        The word of `omega` that stands for words not named there; they have
        weight zero where None.
    states : sequence of str, default=None
        Names of the states.

    Attributes
    ----------
    alpha : ndarray of float64, shape (n,)
        Initial weights.
    omega_matrix : ndarray of float64, shape (n_words, n)
        Terminal weights, in the order of `words`.
    words : tuple of str
        The alphabet.
    labels : tuple of str or None
        Node labels that have their own tensor; None where labels are ignored.
    tensors : tuple
        Transition tensors, one per label.
    states : tuple of str or None
        Names of the states.

    See Also
    --------
    SVTAMinimizer : Learn a grammar and minimise its automaton.

    Notes
    -----
    What compiled loops rely on is checked by the constructor, and likewise where an
    automaton comes from a file or a pickle: weights are finite, shapes agree with the
    number of states and of words, coordinates are in range, and no word or label
    occurs twice.

    References
    ----------
    .. [1] Rabusseau, Balle and Cohen (2016). Low-rank approximation of weighted
       tree automata. AISTATS.

    Examples
    --------
    Trees over one letter, weighted by 0.3 per node:

    >>> import numpy as np
    >>> from lpcfg_sk import WTA
    >>> wta = WTA([1.0], np.full((1, 1, 1), 0.3), {"a": [1.0]})
    >>> wta.value(["(X a)", "(X (X a) (X (X a) (X a)))"]).round(4)
    array([1.  , 0.09])
    >>> round(float(wta.singular_values()[0]), 4)
    1.1785
    """

    def __init__(self, alpha, T, omega, *, unknown_word=None, states=None):
        alpha = _vector(alpha, "alpha")
        n = len(alpha)
        if isinstance(T, Mapping):
            if not T:
                raise ValueError("T is an empty mapping; give a tensor for each label.")
            labels = _names(T, "labels of T")
            tensors = []
            for label in labels:
                try:
                    tensors.append(as_tensor(T[label], n))
                except ValueError as error:
                    raise ValueError(f"T[{label!r}]: {error}") from None
        else:
            labels, tensors = None, [as_tensor(T, n)]
        if not isinstance(omega, Mapping) or not omega:
            raise ValueError(
                "omega should map each word to its vector of terminal weights; got "
                f"{'an empty mapping' if isinstance(omega, Mapping) else type(omega)}."
            )
        words = _names(omega, "words of omega")
        matrix = np.stack([_vector(omega[w], f"omega[{w!r}]", n) for w in words])
        if unknown_word is not None and unknown_word not in omega:
            raise ValueError(f"unknown_word {unknown_word!r} is not a word of omega.")
        if states is not None:
            states = tuple(states)
            _names(states, "states")
            if len(states) != n:
                raise ValueError(f"{len(states)} names were given for {n} states.")
        self._set(alpha, tensors, matrix, words, labels, unknown_word, states)

    def _set(self, alpha, tensors, omega, words, labels, unknown_word, states):
        self.__dict__.update(
            alpha=np.array(alpha, dtype=np.float64),
            omega_matrix=np.array(omega, dtype=np.float64, order="C"),
            tensors=tuple(tensors),
            words=tuple(words),
            labels=labels,
            unknown_word=unknown_word,
            states=None if states is None else tuple(states),
            _cache={},
        )
        for array in (self.alpha, self.omega_matrix):
            array.flags.writeable = False

    def __reduce__(self):
        return _restore, automaton_data(self)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name!r} cannot be set: a WTA is immutable.")

    def __delattr__(self, name):
        raise AttributeError(f"{name!r} cannot be deleted: a WTA is immutable.")

    def _cached(self, name, compute):
        """Compute something once per automaton."""
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    @classmethod
    def _build(cls, *parts):
        self = object.__new__(cls)
        self._set(*parts)
        return self

    def _derived(self, alpha, tensors, omega, states=None):
        """Make an automaton over the same alphabet with other weights."""
        return self._build(
            alpha, tensors, omega, self.words, self.labels, self.unknown_word, states
        )

    @classmethod
    def from_pcfg(cls, model):
        """Make the automaton of a grammar (section 5.1).

        Parameters
        ----------
        model : LPCFG or fitted learner
            States of the automaton are the pairs of a nonterminal and one of its
            latent states; labels of nodes are summed out.

        Returns
        -------
        WTA
            f(t) is the sum of the weights of all derivations with the topology
            and the words of t. The alphabet is the words of the grammar, including the
            one for unknown words.
        """
        if hasattr(model, "to_lpcfg"):
            model = model.to_lpcfg()
        grammar = getattr(model, "grammar_", model)
        if not hasattr(grammar, "arrays") or not hasattr(grammar, "nonterminals"):
            advice = "fit the learner first"
            if hasattr(model, "steps"):
                advice = "give the learner of the Pipeline, fitted, e.g. parser[-1]"
            raise TypeError(
                "from_pcfg takes an LPCFG or a fitted learner whose grammar_ is one, "
                f"got {type(model).__name__}; {advice}."
            )
        alpha, tensor, omega, states = automaton_of_grammar(grammar)
        return cls._build(
            alpha, [tensor], omega, grammar.words, None, grammar.unknown_word, states
        )

    def to_wcfg(self):
        """Make the weighted grammar with one nonterminal per state (section 5.1).

        Returns
        -------
        LPCFG
            Its string values are those of the automaton; node labels are the
            states' names.
        """
        return grammar_of_automaton(self)

    @property
    def n_states(self):
        """Number of states."""
        return len(self.alpha)

    @property
    def n_parameters(self):
        """Numbers that specify the transitions, as the paper counts them."""
        return sum(t.n_parameters for t in self.tensors)

    @property
    def T(self):
        """Transition weights, in the form that the constructor takes."""
        forms = [tuple(t.arrays().values()) for t in self.tensors]
        forms = [f[0] if len(f) == 1 else f for f in forms]
        if self.labels is None:
            return forms[0]
        return dict(zip(self.labels, forms, strict=True))

    @property
    def omega(self):
        """Terminal weights of each word."""
        rows = zip(self.words, self.omega_matrix, strict=True)
        return MappingProxyType(dict(rows))

    def __repr__(self):
        kinds = "/".join(sorted({t.kind for t in self.tensors}))
        labels = "" if self.labels is None else f", {len(self.labels)} node labels"
        return (
            f"<WTA of {self.n_states} states, {len(self.words)} words{labels}, "
            f"{self.n_parameters} {kinds} transition weights>"
        )

    def _repr_html_(self):
        figures = {
            "states": int(self.n_states),
            "words": len(self.words),
            "node labels": "ignored" if self.labels is None else len(self.labels),
            "transition weights": int(self.n_parameters),
            "form of the weights": ", ".join(sorted({t.kind for t in self.tensors})),
        }
        return figures_html("WTA", figures)

    # -- values ------------------------------------------------------------------

    def log_value(self, X, *, n_jobs=None):
        """Sign and log absolute value of f(t) for each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees; a leaf is a pre-terminal over a word. Labels are ignored
            unless the automaton has a tensor for each label.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        sign : ndarray of float64, shape (n_trees,)
            -1, 0 or 1.
        log : ndarray of float64, shape (n_trees,)
            Natural logarithm of the absolute value of f(t), -inf where the sign is 0.
        """
        return tree_log_values(self, _binary_trees(X), n_jobs=n_jobs)

    def value(self, X, *, n_jobs=None):
        """Value f(t) of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees; a leaf is a pre-terminal over a word.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_trees,)
            Large trees may underflow to 0; see :meth:`log_value`.
        """
        sign, log = self.log_value(X, n_jobs=n_jobs)
        with np.errstate(over="ignore"):
            return sign * np.exp(log)

    def tree_vectors(self, X, *, n_jobs=None):
        """Vector ω(t) of each tree: columns of S_A in H = P_A S_A (section 2.2).

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees; a leaf is a pre-terminal over a word.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_trees, n)
            One row per tree; f(t) is its product with `alpha`.

        Examples
        --------
        >>> import numpy as np
        >>> from lpcfg_sk import WTA
        >>> wta = WTA([1.0], np.full((1, 1, 1), 0.5), {"a": [1.0]})
        >>> wta.tree_vectors(["(X (P a) (P a))"])
        array([[0.5]])
        """
        vectors, log_scale = tree_vectors(self, _binary_trees(X), n_jobs=n_jobs)
        return vectors * np.exp(log_scale)[:, None]

    def context_vectors(self, X, *, hole="*", n_jobs=None):
        """Vector α(c) of each context: rows of P_A in H = P_A S_A (section 2.2).

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees with one leaf over the word `hole`, which stands for any tree.
        hole : str, default="*"
            The word that marks the hole.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_contexts, n)
            One row per context; f(c[t]) is its product with ω(t).

        Examples
        --------
        >>> import numpy as np
        >>> from lpcfg_sk import WTA
        >>> wta = WTA([1.0], np.full((1, 1, 1), 0.5), {"a": [1.0]})
        >>> wta.context_vectors(["(X (P a) (X (P a) (P *)))"])
        array([[0.25]])
        """
        X = _binary_trees(X)
        token = np.flatnonzero(X.tokens.map_to([hole])[X.token] >= 0)
        row = np.searchsorted(X.token_offsets, token, side="right") - 1
        n_holes = np.bincount(row, minlength=len(X))
        if (n_holes != 1).any():
            bad = int(np.flatnonzero(n_holes != 1)[0])
            raise ValueError(
                f"A context has one leaf over the word {hole!r}; row {bad} has "
                f"{n_holes[bad]}."
            )
        vectors, log_scale = leaf_contexts(self, X, n_jobs=n_jobs)
        return vectors[token] * np.exp(log_scale[token])[:, None]

    def condition_numbers(self, X, *, n_jobs=None):
        """Measure how much rounding errors grow in the value of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees; a leaf is a pre-terminal over a word.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_trees,)
            ``κ(t) = Σ_v ‖α(c_v)‖ ‖ω(t_v)‖ / |f(t)|`` over the nodes v of
            t = c_v[t_v], inf where f(t) = 0. To first order, a relative error ε in
            the vector of every node changes f(t) by at most κ(t) ε of itself, so
            about 16 − log₁₀ κ(t) of its digits are good. It depends on the basis of
            the states.
        """
        return tree_condition_numbers(self, _binary_trees(X), n_jobs=n_jobs)

    # -- files -------------------------------------------------------------------

    def save(self, path):
        """Write the automaton to one file, without pickle.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        """
        meta, arrays = automaton_data(self)
        save_arrays(path, _KIND, _VERSION, meta, arrays)

    @classmethod
    def load(cls, path):
        """Read an automaton that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        WTA

        Raises
        ------
        ValueError
            If the file is damaged, foreign, too new, or its content is not a
            valid automaton.
        """
        _, meta, arrays = load_arrays(path, _KIND, _VERSION)
        try:
            return cls._build(*automaton_parts(meta, arrays))
        except ValueError as error:
            raise ValueError(
                f"{path} does not hold a valid automaton: {error}"
            ) from error


def _restore(meta, arrays):
    return WTA._build(*automaton_parts(meta, arrays))


def _binary_trees(X):
    return check_treebank(
        X, estimator="WTA", parsed=True, binary=True, allow_empty=True
    )


def _names(names, what):
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(
            f"The {what} should be strings, got {wrong[0]!r} of type "
            f"{type(wrong[0]).__name__}."
        )
    return tuple(sorted(names))


def _vector(values, name, n=None):
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0 or n not in (None, len(array)):
        expected = "a non-empty vector" if n is None else f"a vector of length {n}"
        raise ValueError(f"{name} should be {expected}, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds nan or infinity.")
    return array
