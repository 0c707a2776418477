"""Probabilistic grammars: checks, normalisation, and drawing trees."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._lpcfg_trees import SamplingTables, draw_trees
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk.treebank import SymbolTable, Treebank

__all__ = ["normalize", "sample_trees", "why_not_probabilistic"]

#: How far sums of probabilities may be from one.
_TOLERANCE = 1e-6


def why_not_probabilistic(grammar):
    """Say why the parameters of a grammar are not probabilities.

    Parameters
    ----------
    grammar : LPCFG
        The grammar.

    Returns
    -------
    str or None
        What is wrong, None if nothing is.
    """
    a = grammar.arrays
    for name in ("binary", "lexical", "root"):
        values = getattr(a, name)
        if values.min(initial=0.0) < 0:
            return f"a parameter of {name} is negative ({values.min():.3g})"
    if abs(a.root.sum() - 1) > _TOLERANCE:
        return f"the root probabilities sum to {a.root.sum():.6g} instead of 1"
    totals = _rule_totals(grammar).sum(axis=0)
    wrong = np.flatnonzero((np.abs(totals - 1) > _TOLERANCE) & _reached(grammar))
    if len(wrong):
        first = offsets(a.n_states)
        label = int(np.searchsorted(first, wrong[0], side="right")) - 1
        return (
            f"the rules of state {wrong[0] - first[label]} of "
            f"{grammar.nonterminals[label]!r} sum to {totals[wrong[0]]:.6g} instead "
            "of 1"
        )
    return None


def normalize(grammar):
    """See :meth:`LPCFG.normalized`."""
    a = grammar.arrays
    for name in ("binary", "lexical", "root"):
        if getattr(a, name).min(initial=0.0) < 0:
            raise ValueError(
                f"The grammar has negative parameters in {name} and cannot be "
                "normalised."
            )
    totals = _rule_totals(grammar).sum(axis=0)
    totals[totals == 0] = 1.0
    rows, cells = _binary_rows(a)
    whole = a.root.sum()
    return type(grammar).from_arrays(
        grammar.nonterminals,
        grammar.words,
        a._replace(
            binary=a.binary / np.repeat(totals[rows], cells),
            lexical=a.lexical / totals[_states(a, a.lex_label)],
            root=a.root / whole if whole > 0 else a.root,
        ),
        unknown_word=grammar.unknown_word,
    )


def sample_trees(grammar, n, random_state, max_nodes):
    """See :meth:`LPCFG.sample`.

    Returns
    -------
    treebank : Treebank
    states : ndarray of int32
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n must be a whole number from 0 on, got {n!r}.")
    problem = why_not_probabilistic(grammar)
    if problem is not None:
        raise ValueError(
            f"Only a probabilistic grammar can be sampled, but {problem}; see "
            "LPCFG.normalized for grammars without negative parameters."
        )
    a = grammar.arrays
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    choice_offset, choice_total, choice = _choices(grammar)
    tables = SamplingTables(
        n_states=a.n_states,
        state_offset=offsets(a.n_states),
        choice_offset=choice_offset,
        choice_total=choice_total,
        choice=choice,
        rule_left=a.rule_left,
        rule_right=a.rule_right,
        rule_offset=a.rule_offset,
        binary=a.binary,
        root_label=a.root_label,
        root_cumulative=np.cumsum(a.root),
    )
    nodes, bounds = draw_trees(
        int(n), np.random.Generator(np.random.PCG64(seed)), int(max_nodes), tables
    )
    if bounds[-1] < 0:
        raise ValueError(
            f"A tree grew beyond max_nodes={max_nodes} nodes; the trees of this "
            "grammar may be infinitely large. Sample with a larger max_nodes if they "
            "are not."
        )
    label, state, size, parent, word = np.ascontiguousarray(nodes.T)
    return _treebank(grammar, label, size, parent, word, bounds), state


def _states(arrays, labels):
    """Return the state of each value of vectors of the given nonterminals."""
    first = offsets(arrays.n_states)
    return ragged_indices(first[labels], arrays.n_states[labels])


def _binary_rows(arrays):
    """Return the parent's state of each row of the tensors, and its length."""
    m = arrays.n_states.astype(np.int64)
    cells = m[arrays.rule_left] * m[arrays.rule_right]
    return (
        _states(arrays, arrays.rule_parent),
        np.repeat(cells, m[arrays.rule_parent]),
    )


def _rule_totals(grammar):
    """Return the sums of binary and of lexical parameters of each state."""
    a = grammar.arrays
    n = int(a.n_states.sum())
    rows, cells = _binary_rows(a)
    sums = np.add.reduceat(a.binary, offsets(cells)[:-1]) if len(rows) else np.zeros(0)
    return np.stack(
        [
            np.bincount(rows, weights=sums, minlength=n),
            np.bincount(_states(a, a.lex_label), weights=a.lexical, minlength=n),
        ]
    )


def _reached(grammar):
    """Return which states some rule or root can generate."""
    a = grammar.arrays
    reached = np.zeros(int(a.n_states.sum()), dtype=bool)
    reached[_states(a, a.root_label)[a.root > 0]] = True
    m = a.n_states.astype(np.int64)
    first = offsets(m)
    rule = np.repeat(np.arange(len(a.rule_parent)), np.diff(a.rule_offset))
    used = np.flatnonzero(a.binary > 0)
    rule = rule[used]
    within = used - a.rule_offset[rule]
    left, right = a.rule_left[rule], a.rule_right[rule]
    reached[first[left] + within // m[right] % m[left]] = True
    reached[first[right] + within % m[right]] = True
    return reached


def _choices(grammar):
    """List what each state may generate, with cumulative probabilities."""
    a = grammar.arrays
    rows, cells = _binary_rows(a)
    sums = np.add.reduceat(a.binary, offsets(cells)[:-1]) if len(rows) else np.zeros(0)
    rule = np.repeat(np.arange(len(a.rule_parent)), a.n_states[a.rule_parent])
    word = np.repeat(np.arange(len(grammar.words)), np.diff(a.word_offset))
    emitter = _states(a, a.lex_label)
    state = np.concatenate([rows, emitter])
    choice = np.concatenate([rule, -1 - np.repeat(word, a.n_states[a.lex_label])])
    order = np.argsort(state, kind="stable")
    probability = np.concatenate([sums, a.lexical])[order]
    bounds = offsets(np.bincount(state, minlength=int(a.n_states.sum())))
    running = np.cumsum(probability)
    before = np.concatenate([[0.0], running])[bounds[:-1]]
    running -= np.repeat(before, np.diff(bounds))
    return bounds, running, choice[order].astype(np.int64)


def _treebank(grammar, label, size, parent, word, bounds):
    leaf = word >= 0
    n_leaves = offsets(leaf)
    start = n_leaves[:-1] - np.repeat(n_leaves[bounds[:-1]], np.diff(bounds))
    stop = start + (size + 1) // 2
    words = SymbolTable(grammar.words)
    return Treebank.from_columns(
        label=label,
        size=size,
        parent=parent,
        start=start.astype(np.int32),
        stop=stop.astype(np.int32),
        node_offsets=bounds,
        token=word[leaf],
        word=word[leaf],
        token_offsets=n_leaves[bounds],
        labels=SymbolTable(grammar.nonterminals),
        tokens=words,
        words=words,
    )
