"""Random grammars and trees drawn from grammars."""

from collections.abc import Mapping
from itertools import product
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._validation import N_STATES, Interval, validate_params
from lpcfg_sk.lpcfg import LPCFG

# Share of the pivot features among what a state emits, where `pivot` is True.
_PIVOT_SHARE = 0.25


@validate_params(
    {
        "n_interminals": [Interval(Integral, 1, None, closed="left")],
        "n_preterminals": [Interval(Integral, 1, None, closed="left")],
        "n_words": [Interval(Integral, 1, None, closed="left")],
        "m": N_STATES,
        "pivot": ["boolean", Interval(Real, 0, 1, closed="neither")],
        "mean_length": [Interval(Real, 2, None, closed="neither")],
        "density": [Interval(Real, 0, 1, closed="right")],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_lpcfg(
    n_interminals=4,
    n_preterminals=6,
    n_words=60,
    *,
    m=2,
    pivot=False,
    mean_length=8.0,
    density=0.5,
    concentration=1.0,
    random_state=None,
):
    """Make a random L-PCFG.

    Parameters
    ----------
    n_interminals : int, default=4
        Number of nonterminals with binary rules, named ``A0``, ``A1``, ...
    n_preterminals : int, default=6
        Number of nonterminals over words, named ``P0``, ``P1``, ...
    n_words : int, default=60
        Number of words, named ``w0``, ``w1``, ...
    m : int, mapping or callable, default=2
        Number of latent states: the same for all, or by name (1 for names that a
        mapping lacks).
    pivot : bool or float, default=False
        Whether the pivot assumption holds (assumption 1 of [1]_): each state has a
        feature that no other state of its nonterminal has, inside and outside.
        Inside it is a word or a rule, with the given probability (0.25 for True)
        among the words or among the rules over two pre-terminals; outside it is
        the rule above.
    mean_length : float, default=8.0
        Expected number of words of a tree, exact for every state.
    density : float, default=0.5
        Share of all possible rules, and of all words of a pre-terminal, that have a
        probability.
    concentration : float, default=1.0
        Parameter of the Dirichlet distributions; small values make a few rules
        likely.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    grammar : LPCFG
        A probabilistic grammar; all nonterminals and words can be reached.

    Notes
    -----
    Every child is an in-terminal with the same probability p, whatever the parent's
    state. The mean matrix of the branching process therefore has the spectral
    radius 2p, and a tree has 2(1 - p)/(1 - 2p) words on average; p follows from
    `mean_length` and is always below ½, so all trees are finite.

    References
    ----------
    .. [1] Cohen and Collins (2014). A provably correct learning algorithm for
       latent-variable PCFGs. ACL.

    Examples
    --------
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> make_lpcfg(2, 3, 20, m={"A0": 3, "P0": 2}, random_state=0).m
    {'A0': 3, 'A1': 1, 'P0': 2, 'P1': 1, 'P2': 1}
    """
    rng = check_random_state(random_state)
    interminals = _names("A", n_interminals)
    preterminals = _names("P", n_preterminals)
    n_states = {a: _states_of(a, m) for a in interminals + preterminals}
    share = _PIVOT_SHARE if pivot is True else float(pivot)
    _check_room(interminals, preterminals, n_words, n_states, share)

    rules = _choose_rules(rng, interminals, preterminals, density)
    reserved = _reserve_pivots(rng, interminals, preterminals, n_states, rules, share)
    p = (mean_length - 2) / (2 * mean_length - 2)
    mass = {"II": p * p, "IP": p * (1 - p), "PI": p * (1 - p), "PP": (1 - p) ** 2}
    binary = {}
    for (a, kind), chosen in rules.items():
        drawn = _draw_rules(rng, a, sorted(chosen), n_states, reserved, concentration)
        inner = share if kind == "PP" else 0.0
        binary.update(_scaled(drawn, n_states[a], reserved, mass[kind], inner))
    names = _names("w", n_words)
    lexical = _draw_words(
        rng, preterminals, names, n_states, share, density, concentration
    )
    root_states = sum(n_states[a] for a in interminals)
    root = _dirichlet(rng, concentration, (root_states,))
    bounds = np.cumsum([n_states[a] for a in interminals])[:-1]
    root = dict(zip(interminals, np.split(root, bounds), strict=True))
    return LPCFG.from_parameters(binary=binary, lexical=lexical, root=root)


def make_treebank(grammar, n=1000, random_state=None):
    """Draw a treebank from a grammar.

    Parameters
    ----------
    grammar : LPCFG or learner
        A probabilistic grammar, or a fitted learner that has one.
    n : int, default=1000
        Number of trees.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    treebank : Treebank
        Binary trees.

    Examples
    --------
    >>> from lpcfg_sk.datasets import make_lpcfg, make_treebank
    >>> treebank = make_treebank(make_lpcfg(random_state=0), n=10, random_state=0)
    >>> len(treebank)
    10
    """
    grammar = getattr(grammar, "grammar_", grammar)
    if not isinstance(grammar, LPCFG):
        raise TypeError(
            "make_treebank takes an LPCFG or a fitted learner, got "
            f"{type(grammar).__name__}"
        )
    return grammar.sample(n, random_state=random_state)


def _gamma(rng, concentration, shape):
    # A tiny concentration would let all values of a state vanish.
    return rng.gamma(concentration, size=shape) + 1e-200


def _dirichlet(rng, concentration, shape):
    values = _gamma(rng, concentration, shape)
    return values / values.sum(axis=-1, keepdims=True)


def _names(letter, n):
    width = len(str(n - 1))
    return [f"{letter}{i:0{width}d}" for i in range(n)]


def _states_of(name, m):
    if isinstance(m, Mapping):
        states = m.get(name, 1)
    else:
        states = m(name) if callable(m) else m
    if not isinstance(states, Integral) or states < 1:
        raise ValueError(
            f"m gives {states!r} states to {name!r}, expected a positive int"
        )
    return int(states)


def _check_room(interminals, preterminals, n_words, n_states, share):
    """Reject sizes for which there are too few words or rules."""
    if not share:
        return
    n_inter, n_pre = len(interminals), len(preterminals)
    n_pivots = sum(n_states[a] for a in preterminals)
    largest = max(n_states.values())
    if n_words <= n_pivots:
        raise ValueError(
            f"pivot needs a word for each of the {n_pivots} states of pre-terminals, "
            f"and more; raise n_words={n_words}"
        )
    if n_pre * n_pre <= largest or n_inter * n_pre < largest:
        raise ValueError(
            f"pivot needs a rule for each of {largest} states, and "
            f"{n_inter} in-terminals and {n_pre} pre-terminals do not have as many; "
            "raise n_preterminals"
        )


def _choose_rules(rng, interminals, preterminals, density):
    """Right-hand sides by parent and kind, such that all symbols occur in some."""
    symbols = {"I": interminals, "P": preterminals}
    rules = {}
    for a in interminals:
        for kind in ("II", "IP", "PI", "PP"):
            every = list(product(symbols[kind[0]], symbols[kind[1]]))
            n = max(1, round(density * len(every)))
            taken = rng.choice(len(every), size=n, replace=False)
            rules[a, kind] = {every[i] for i in taken.tolist()}
    used = {x for chosen in rules.values() for pair in chosen for x in pair}
    for letter, kind in (("I", "IP"), ("P", "PP")):
        for x in symbols[letter]:
            if x not in used:
                a, b = rng.choice(interminals), rng.choice(preterminals)
                rules[str(a), kind].add((x, str(b)))
    return rules


def _reserve_pivots(rng, interminals, preterminals, n_states, rules, share):
    """Reserve rules for states: {rule: (state of the parent, state of the left child)}.

    A state of an in-terminal has a rule of its own, and every state a rule above it
    in which the left child is in that state only.
    """
    reserved = {}
    if not share:
        return reserved
    pairs = list(product(preterminals, preterminals))
    for a in interminals:
        order = rng.permutation(len(pairs)).tolist()
        for h in range(n_states[a]):
            rules[a, "PP"].add(pairs[order[h]])
            reserved[a, *pairs[order[h]]] = (h, None)
        # Not all rules may be reserved.
        rules[a, "PP"].add(pairs[order[n_states[a]]])
    places = list(product(interminals, preterminals))
    for b in interminals + preterminals:
        kind = "IP" if b in interminals else "PP"
        order = rng.permutation(len(places)).tolist()
        for h in range(n_states[b]):
            a, c = places[order[h]]
            rules[a, kind].add((b, c))
            reserved[a, b, c] = (reserved.get((a, b, c), (None, None))[0], h)
    return reserved


def _draw_rules(rng, a, chosen, n_states, reserved, concentration):
    drawn = {}
    for b, c in chosen:
        shape = (n_states[a], n_states[b], n_states[c])
        values = _gamma(rng, concentration, shape)
        parent, left = reserved.get((a, b, c), (None, None))
        if parent is not None:
            values[np.arange(shape[0]) != parent] = 0.0
        if left is not None:
            values[:, np.arange(shape[1]) != left] = 0.0
        drawn[a, b, c] = values
    return drawn


def _scaled(drawn, n_states, reserved, mass, share):
    """Give each state the mass, and `share` of it to the rule reserved for it."""
    own = np.zeros(n_states)
    others = np.zeros(n_states)
    for rule, values in drawn.items():
        is_own = reserved.get(rule, (None,))[0] is not None
        target = own if is_own else others
        target += values.sum(axis=(1, 2))
    scaled = {}
    for rule, values in drawn.items():
        if reserved.get(rule, (None,))[0] is not None:
            factor = mass * share / np.where(own > 0, own, 1.0)
        else:
            factor = mass * np.where(own > 0, 1.0 - share, 1.0) / others
        scaled[rule] = values * factor[:, None, None]
    return scaled


def _draw_words(rng, preterminals, names, n_states, share, density, concentration):
    n_pivots = sum(n_states[a] for a in preterminals) if share else 0
    pivots, shared = iter(names[:n_pivots]), names[n_pivots:]
    vocabulary = {}
    for a in preterminals:
        n = max(1, round(density * len(shared)))
        taken = rng.choice(len(shared), size=n, replace=False)
        vocabulary[a] = {shared[i] for i in taken.tolist()}
    unused = set(shared).difference(*vocabulary.values())
    for x in sorted(unused):
        vocabulary[str(rng.choice(preterminals))].add(x)
    lexical = {}
    for a in preterminals:
        words = sorted(vocabulary[a])
        drawn = _dirichlet(rng, concentration, (n_states[a], len(words)))
        lexical.update({(a, x): (1 - share) * drawn[:, i] for i, x in enumerate(words)})
        if share:
            for h in range(n_states[a]):
                lexical[a, next(pivots)] = share * np.eye(n_states[a])[h]
    return lexical
