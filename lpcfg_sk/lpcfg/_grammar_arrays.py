"""The flat arrays behind a grammar, the form that kernels read."""

from typing import NamedTuple

import numpy as np

from lpcfg_sk._ragged import offsets, read_only
from lpcfg_sk.treebank import lexical_keys, rule_keys

__all__ = ["GrammarArrays", "check_arrays"]


class GrammarArrays(NamedTuple):
    """Parameters of an L-PCFG in flat arrays.

    Nonterminals are 0..N-1, words 0..V-1; nonterminal a has ``n_states[a]`` latent
    states.

    Attributes
    ----------
    n_states : ndarray of int32, shape (N,)
        Number of latent states of each nonterminal.
    rule_parent, rule_left, rule_right : ndarray of int32, shape (R,)
        The binary rules a → b c, sorted by (a, b, c).
    rule_offset : ndarray of int64, shape (R + 1,)
        Rule r has the tensor ``binary[rule_offset[r]:rule_offset[r + 1]]``, of
        shape (m_a, m_b, m_c), row-major.
    binary : ndarray of float64
        All rule tensors, one after the other.
    word_offset : ndarray of int64, shape (V + 1,)
        The lexical entries of word x are ``word_offset[x]:word_offset[x + 1]``.
    lex_label : ndarray of int32, shape (E,)
        Nonterminal of each lexical entry, increasing within a word.
    lex_offset : ndarray of int64, shape (E + 1,)
        Entry e has the vector ``lexical[lex_offset[e]:lex_offset[e + 1]]``.
    lexical : ndarray of float64
        All lexical vectors.
    root_label : ndarray of int32, shape (K,)
        Nonterminals that may stand at the root, increasing.
    root_offset : ndarray of int64, shape (K + 1,)
        Root entry k has the vector ``root[root_offset[k]:root_offset[k + 1]]``.
    root : ndarray of float64
        All root vectors.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[1.0]]]},
    ...     lexical={("A", "x"): [0.25], ("A", "y"): [0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> grammar.arrays.lexical
    array([0.25, 0.75])
    >>> grammar.arrays.rule_parent
    array([1], dtype=int32)
    """

    n_states: np.ndarray
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    rule_offset: np.ndarray
    binary: np.ndarray
    word_offset: np.ndarray
    lex_label: np.ndarray
    lex_offset: np.ndarray
    lexical: np.ndarray
    root_label: np.ndarray
    root_offset: np.ndarray
    root: np.ndarray

    def rule_keys(self):
        """Return the increasing key of each rule."""
        rules = (self.rule_parent, self.rule_left, self.rule_right)
        return rule_keys(*rules, len(self.n_states))

    def lexical_keys(self):
        """Return the increasing key of each lexical entry."""
        words = np.arange(len(self.word_offset) - 1)
        word = np.repeat(words, np.diff(self.word_offset))
        return lexical_keys(word, self.lex_label, len(self.n_states))

    @property
    def is_signed(self):
        """Whether a parameter is negative."""
        values = (self.binary, self.lexical, self.root)
        return any(part.min(initial=0.0) < 0.0 for part in values)


_DTYPES = {
    "n_states": np.int32,
    "rule_parent": np.int32,
    "rule_left": np.int32,
    "rule_right": np.int32,
    "rule_offset": np.int64,
    "binary": np.float64,
    "word_offset": np.int64,
    "lex_label": np.int32,
    "lex_offset": np.int64,
    "lexical": np.float64,
    "root_label": np.int32,
    "root_offset": np.int64,
    "root": np.float64,
}


def check_arrays(arrays, n_words):
    """Check flat parameters and return them with the agreed types, read-only.

    Parameters
    ----------
    arrays : GrammarArrays
        The parameters.
    n_words : int
        Number of words of the grammar.

    Returns
    -------
    GrammarArrays
        Contiguous read-only arrays of the agreed types; copies only where needed.

    Raises
    ------
    ValueError
        If lengths, offsets, ids or order do not agree, or a value is not finite.
    """
    checked = {}
    for name, dtype in _DTYPES.items():
        given = np.asarray(getattr(arrays, name))
        if given.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {given.shape}.")
        array = np.ascontiguousarray(given, dtype=dtype)
        if dtype is not np.float64 and not np.array_equal(array, given):
            raise ValueError(f"{name} must hold integers that fit {dtype.__name__}.")
        checked[name] = read_only(array)
    arrays = GrammarArrays(**checked)
    n_states = arrays.n_states
    if n_states.size and n_states.min() < 1:
        bad = int(np.argmin(n_states))
        raise ValueError(
            f"Nonterminal {bad} has {n_states[bad]} latent states; at least 1 needed."
        )
    for name in (
        "rule_parent",
        "rule_left",
        "rule_right",
        "lex_label",
        "root_label",
    ):
        ids = getattr(arrays, name)
        if ids.size and (ids.min() < 0 or ids.max() >= len(n_states)):
            raise ValueError(
                f"{name} must hold nonterminal ids from 0 to {len(n_states) - 1}, "
                f"got {ids.min()} to {ids.max()}."
            )
    m = n_states.astype(np.int64)
    rules = m[arrays.rule_parent] * m[arrays.rule_left] * m[arrays.rule_right]
    _check_pieces("binary", arrays.binary, arrays.rule_offset, rules)
    _check_pieces("lexical", arrays.lexical, arrays.lex_offset, m[arrays.lex_label])
    _check_pieces("root", arrays.root, arrays.root_offset, m[arrays.root_label])
    if (
        len(arrays.word_offset) != n_words + 1
        or arrays.word_offset[0] != 0
        or arrays.word_offset[-1] != len(arrays.lex_label)
        or np.any(np.diff(arrays.word_offset) < 0)
    ):
        raise ValueError(
            f"word_offset must rise from 0 to {len(arrays.lex_label)} in "
            f"{n_words + 1} steps, one more than there are words."
        )
    _check_increasing("rules by (parent, left, right)", arrays.rule_keys())
    _check_increasing("lexical entries by (word, label)", arrays.lexical_keys())
    _check_increasing("root entries by label", arrays.root_label)
    return arrays


def _check_pieces(name, values, offset, lengths):
    expected = offsets(lengths)
    if not np.array_equal(offset, expected):
        raise ValueError(
            f"The offsets of {name} do not agree with the numbers of latent states: "
            f"expected {len(lengths)} pieces of {expected[-1]} values in all."
        )
    if len(values) != expected[-1]:
        raise ValueError(
            f"{name} must hold {expected[-1]} values for the numbers of latent "
            f"states, got {len(values)}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite, found nan or infinity.")


def _check_increasing(what, keys):
    if np.any(np.diff(keys) <= 0):
        raise ValueError(f"The {what} must be sorted, without repetition.")
