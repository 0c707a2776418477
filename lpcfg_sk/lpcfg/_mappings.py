"""Parameters of a grammar as mappings and as a table."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lpcfg_sk._ragged import find_keys, offsets
from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays
from lpcfg_sk.treebank import lexical_keys, rule_keys


def arrays_of_mappings(binary, lexical, root):
    """Turn mappings from rules to arrays into names and flat arrays.

    Parameters
    ----------
    binary, lexical, root : mapping
        See :meth:`LPCFG.from_parameters`.

    Returns
    -------
    nonterminals, words : list of str
    arrays : GrammarArrays
    """
    binary = _checked(binary, "binary", 3)
    lexical = _checked(lexical, "lexical", 2)
    root = _checked(root, "root", 1)
    if not root or not (binary or lexical):
        raise ValueError(
            "A grammar needs at least one root and one rule; got "
            f"{len(root)} roots, {len(binary)} binary and {len(lexical)} lexical "
            "rules."
        )
    m = {}
    for (a, b, c), tensor in binary.items():
        for name, states in zip((a, b, c), tensor.shape, strict=True):
            _agree(m, name, states, f"binary[{(a, b, c)!r}]")
    for (a, x), vector in lexical.items():
        _agree(m, a, len(vector), f"lexical[{(a, x)!r}]")
    for (a,), vector in root.items():
        _agree(m, a, len(vector), f"root[{a!r}]")
    nonterminals = sorted(m)
    words = sorted({x for _, x in lexical})
    label_id = {a: i for i, a in enumerate(nonterminals)}
    word_id = {x: i for i, x in enumerate(words)}
    rules = sorted(binary, key=lambda r: tuple(map(label_id.get, r)))
    entries = sorted(lexical, key=lambda e: (word_id[e[1]], label_id[e[0]]))
    roots = sorted(root)
    lex_word = [word_id[x] for _, x in entries]
    tensors = [binary[r].ravel() for r in rules]
    vectors = [lexical[e] for e in entries]
    root_vectors = [root[a] for a in roots]
    arrays = GrammarArrays(
        n_states=_ids(m[a] for a in nonterminals),
        rule_parent=_ids(label_id[a] for a, _, _ in rules),
        rule_left=_ids(label_id[b] for _, b, _ in rules),
        rule_right=_ids(label_id[c] for _, _, c in rules),
        rule_offset=offsets([len(t) for t in tensors]),
        binary=_joined(tensors),
        word_offset=offsets(
            np.bincount(np.array(lex_word, dtype=np.int64), minlength=len(words))
        ),
        lex_label=_ids(label_id[a] for a, _ in entries),
        lex_offset=offsets([len(v) for v in vectors]),
        lexical=_joined(vectors),
        root_label=_ids(label_id[a] for (a,) in roots),
        root_offset=offsets([len(v) for v in root_vectors]),
        root=_joined(root_vectors),
    )
    return nonterminals, words, arrays


def parameter_frame(grammar):
    """See :meth:`LPCFG.to_frame`."""
    a = grammar.arrays
    rule, state, left_state, right_state = a.binary_states()
    entry = np.repeat(np.arange(len(a.lex_label)), np.diff(a.lex_offset))
    roots = np.repeat(np.arange(len(a.root_label)), np.diff(a.root_offset))
    none = np.full(len(entry) + len(roots), -1)

    def names(codes, strings):
        return pd.Categorical.from_codes(np.concatenate(codes), strings)

    return pd.DataFrame(
        {
            "kind": names(
                [np.full(len(part), k) for k, part in enumerate((rule, entry, roots))],
                ["binary", "lexical", "root"],
            ),
            "parent": names(
                [a.rule_parent[rule], a.lex_label[entry], a.root_label[roots]],
                grammar.nonterminals,
            ),
            "state": np.concatenate(
                [
                    state,
                    np.arange(len(entry)) - a.lex_offset[entry],
                    np.arange(len(roots)) - a.root_offset[roots],
                ]
            ),
            "left": names([a.rule_left[rule], none], grammar.nonterminals),
            "left_state": np.append(left_state, none),
            "right": names([a.rule_right[rule], none], grammar.nonterminals),
            "right_state": np.append(right_state, none),
            "word": names(
                [np.full(len(rule), -1), a.lex_word[entry], np.full(len(roots), -1)],
                grammar.words,
            ),
            "value": np.concatenate([a.binary, a.lexical, a.root]),
        }
    )


def _ids(values):
    return np.fromiter(values, dtype=np.int32)


def _joined(pieces):
    return np.concatenate([np.zeros(0), *pieces])


def _checked(given, name, length):
    """Return a dict from tuples of `length` strings to finite float arrays."""
    if given is None:
        return {}
    if not hasattr(given, "items"):
        raise TypeError(f"{name} must map rules to arrays, got {type(given).__name__}.")
    checked = {}
    for key, value in given.items():
        rule = (key,) if length == 1 else key
        if (
            not isinstance(rule, tuple)
            or len(rule) != length
            or not all(isinstance(s, str) for s in rule)
        ):
            form = {1: "a", 2: "(a, x)", 3: "(a, b, c)"}[length]
            raise ValueError(
                f"Keys of {name} must be {form} with strings, got {key!r}."
            )
        array = np.asarray(value, dtype=np.float64)
        n_axes = 3 if length == 3 else 1
        if array.ndim != n_axes or array.size == 0:
            raise ValueError(
                f"{name}[{key!r}] must be a non-empty array with {n_axes} axes, got "
                f"shape {array.shape}."
            )
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}[{key!r}] must be finite, found nan or infinity.")
        checked[rule] = array
    return checked


def _agree(m, name, states, where):
    if m.setdefault(name, states) != states:
        raise ValueError(
            f"{where} gives nonterminal {name!r} {states} latent states, but another "
            f"parameter gives it {m[name]}."
        )


class _View(Mapping):
    """Read-only mapping over the pieces of a flat array.

    A subclass sets `_kind`, the name of the array and the prefix of its columns.
    """

    _kind: tuple

    def __init__(self, grammar):
        self._grammar = grammar
        values, prefix = self._kind
        self._values = getattr(grammar.arrays, values)
        self._offset = getattr(grammar.arrays, f"{prefix}_offset")

    def __len__(self):
        return len(self._offset) - 1

    def __repr__(self):
        return f"<{type(self).__name__} of {len(self)} rules>"

    def _find(self, rule, keys, key):
        (i,) = find_keys(keys, key)
        if i < 0:
            raise KeyError(rule)
        return self._values[self._offset[i] : self._offset[i + 1]]


class BinaryView(_View):
    _kind = ("binary", "rule")

    def __iter__(self):
        names, a = self._grammar.nonterminals, self._grammar.arrays
        rules = (a.rule_parent.tolist(), a.rule_left.tolist(), a.rule_right.tolist())
        for rule in zip(*rules, strict=True):
            yield tuple(names[i] for i in rule)

    def __getitem__(self, rule):
        g = self._grammar
        if not isinstance(rule, tuple) or len(rule) != 3:
            raise KeyError(rule)
        ids = [g._labels.index(s) for s in rule]
        key = rule_keys(*([i] for i in ids), len(g.nonterminals))
        return self._find(rule, g._rule_keys, key).reshape(g.arrays.n_states[ids])


class LexicalView(_View):
    _kind = ("lexical", "lex")

    def __iter__(self):
        g, a = self._grammar, self._grammar.arrays
        for label, x in zip(a.lex_label.tolist(), a.lex_word.tolist(), strict=True):
            yield g.nonterminals[label], g.words[x]

    def __getitem__(self, rule):
        g = self._grammar
        if not isinstance(rule, tuple) or len(rule) != 2:
            raise KeyError(rule)
        label, word = g._labels.index(rule[0]), g._words.index(rule[1])
        key = lexical_keys([word], [label], len(g.nonterminals))
        return self._find(rule, g._lexical_keys, key)


class RootView(_View):
    _kind = ("root", "root")

    def __iter__(self):
        for label in self._grammar.arrays.root_label.tolist():
            yield self._grammar.nonterminals[label]

    def __getitem__(self, name):
        key = np.array([self._grammar._labels.index(name)])
        return self._find(name, self._grammar.arrays.root_label, key)
