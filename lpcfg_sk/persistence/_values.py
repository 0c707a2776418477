"""Models and other values as plain data; constructors check what files hold."""

import math

import numpy as np

from lpcfg_sk.automata import WTA, automaton_data, automaton_parts
from lpcfg_sk.cfg import CFG, Rule
from lpcfg_sk.lpcfg import LPCFG, GrammarArrays
from lpcfg_sk.persistence._compact import compact_state, make_compact
from lpcfg_sk.treebank import SymbolTable

#: Numbers of a Mersenne twister.
_TWISTER = 624


def value_state(value, *, compact=False, prunes=False):
    """Return the name and plain state of a value, or None for other classes.

    Parameters
    ----------
    value : object
        Anything.
    compact : bool, default=False
        Whether grammars are stored in single precision.
    prunes : bool, default=False
        Whether the value is a grammar that only prunes, see :func:`compact_state`.

    Returns
    -------
    (name, state) : tuple of str and dict, or None
    """
    if compact and type(value) is LPCFG:
        return _COMPACT, compact_state(value, prunes=prunes)
    for name, (cls, state_of, _) in _VALUES.items():
        if type(value) is cls:
            return name, state_of(value)
    return None


def make_value(name, state):
    """Make a value from what `value_state` returned.

    Parameters
    ----------
    name : str
        Name of the class.
    state : dict
        Its state, which is not trusted.

    Returns
    -------
    value : object

    Raises
    ------
    ValueError
        If the state does not describe such a value.
    """
    if name == _COMPACT:
        return make_compact(state)
    if name not in _VALUES:
        raise ValueError(f"this release has no class {name!r}")
    return _VALUES[name][2](state)


def _lpcfg_state(grammar):
    return {
        "nonterminals": list(grammar.nonterminals),
        "words": list(grammar.words),
        "arrays": grammar.arrays._asdict(),
        "unknown_word": grammar.unknown_word,
    }


def _make_lpcfg(state):
    return LPCFG.from_arrays(
        state["nonterminals"],
        state["words"],
        GrammarArrays(**state["arrays"]),
        unknown_word=state["unknown_word"],
    )


def _cfg_state(grammar):
    return {
        "rules": [[r.lhs, list(r.rhs), list(r.terminal)] for r in grammar.rules],
        "start": grammar.start,
        "unary_cycles": grammar.unary_cycles,
        "implicit_start": grammar.implicit_start,
    }


def _make_cfg(state):
    rules = [Rule(lhs, tuple(rhs), tuple(t)) for lhs, rhs, t in state["rules"]]
    symbols = [symbol for rule in rules for symbol in (rule.lhs, *rule.rhs)]
    flags = [state["implicit_start"], *(t for rule in rules for t in rule.terminal)]
    if not (
        all(isinstance(symbol, str) for symbol in symbols)
        and all(isinstance(flag, bool) for flag in flags)
    ):
        raise ValueError("the symbols of a grammar are strings")
    return CFG(
        rules,
        state["start"],
        unary_cycles=state["unary_cycles"],
        implicit_start=state["implicit_start"],
    )


def _wta_state(wta):
    meta, arrays = automaton_data(wta)
    return {"meta": meta, "arrays": arrays}


def _make_wta(state):
    return WTA._build(*automaton_parts(state["meta"], state["arrays"]))


def _table_state(table):
    return {"strings": list(table.strings), "backoff": table.backoff}


def _make_table(state):
    strings, backoff = state["strings"], state["backoff"]
    if not all(isinstance(s, str) for s in strings) or len(set(strings)) < len(strings):
        raise ValueError("a symbol table holds strings, each of them once")
    if backoff is not None and backoff.size:
        if backoff.dtype.kind not in "iu":
            raise ValueError("the classes of words are ids")
        if backoff.min() < 0 or backoff.max() >= len(strings):
            raise ValueError("the class of a word is not in the symbol table")
    return SymbolTable(strings, backoff)


def _random_state_state(generator):
    name, key, position, has_gauss, cached = generator.get_state(legacy=True)
    return {
        "name": name,
        "key": key,
        "position": position,
        "gauss": cached if has_gauss else None,
    }


def _make_random_state(state):
    name, key, position = (state[part] for part in ("name", "key", "position"))
    gauss = state["gauss"]
    # numpy does not check the state, and reads its table at whatever position is given.
    if (
        name != "MT19937"
        or (key.dtype, key.shape) != (np.uint32, (_TWISTER,))
        or type(position) is not int
        or not 0 <= position <= _TWISTER
        or not (gauss is None or (type(gauss) is float and math.isfinite(gauss)))
    ):
        raise ValueError("the state of a random number generator is out of range")
    generator = np.random.RandomState()
    generator.set_state((name, key, position, int(gauss is not None), gauss or 0.0))
    return generator


_COMPACT = "CompactLPCFG"
_VALUES = {
    "LPCFG": (LPCFG, _lpcfg_state, _make_lpcfg),
    "CFG": (CFG, _cfg_state, _make_cfg),
    "WTA": (WTA, _wta_state, _make_wta),
    "SymbolTable": (SymbolTable, _table_state, _make_table),
    "RandomState": (np.random.RandomState, _random_state_state, _make_random_state),
}
