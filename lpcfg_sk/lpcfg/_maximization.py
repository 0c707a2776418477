"""From counts to a probabilistic grammar."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from lpcfg_sk._kernels._em import complete_counts, divide_rows, normalize_rules
from lpcfg_sk._ragged import offsets, ragged_indices
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import TreebankWarning
from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays
from lpcfg_sk.lpcfg._lexicon import smooth_lexicon
from lpcfg_sk.lpcfg._lpcfg import LPCFG

#: Part of a rule's marginals that comes from all rules of its nonterminals. Without
#: it, a smoothed rule would have probability zero in states it was never seen with.
_POOLING = 0.5

#: Rules and words with about this many occurrences or fewer are smoothed more, see
#: `maximize`. Chosen by cross-validation on training trees, where 10 to 40 did equally
#: well.
_RARE = 10.0


class Layout(NamedTuple):
    """Where the parameters of a grammar over the rules of a table lie.

    Attributes
    ----------
    n_states : ndarray of int64, shape (n_nonterminals,)
        Number of latent states.
    rule_parent, rule_left, rule_right : ndarray of int32, shape (n_rules,)
        The binary rules.
    shapes : ndarray of int64, shape (n_rules, 3)
        Numbers of states (m_a, m_b, m_c) of each rule.
    rule_offset, lex_offset, root_offset, state_offset : ndarray of int64
        Offsets of the tensors, the lexical vectors, the root vectors, and of the
        states of each nonterminal among all states.
    """

    n_states: np.ndarray
    rule_parent: np.ndarray
    rule_left: np.ndarray
    rule_right: np.ndarray
    shapes: np.ndarray
    rule_offset: np.ndarray
    lex_offset: np.ndarray
    root_offset: np.ndarray
    state_offset: np.ndarray

    @classmethod
    def build(cls, rules, n_states):
        """Lay out the rules of `rules` with the given numbers of states."""
        m = np.asarray(n_states, dtype=np.int64)
        parts = (rules.rule_parent, rules.rule_left, rules.rule_right)
        shapes = np.ascontiguousarray(np.stack([m[part] for part in parts], axis=1))
        return cls(
            n_states=m,
            rule_parent=rules.rule_parent,
            rule_left=rules.rule_left,
            rule_right=rules.rule_right,
            shapes=shapes,
            rule_offset=offsets(shapes.prod(axis=1)),
            lex_offset=offsets(m[rules.lex_label]),
            root_offset=offsets(m[rules.root_label]),
            state_offset=offsets(m),
        )

    def states(self, labels):
        """Return the state of each value of vectors of the given nonterminals."""
        return ragged_indices(self.state_offset[labels], self.n_states[labels])


class Estimates(NamedTuple):
    """Parameters, or counts, of all rules of a table, in a layout."""

    binary: np.ndarray
    lexical: np.ndarray
    root: np.ndarray


def maximize(rules, layout, counts, *, parameters=None, smoothing=0.0):
    """Turn counts into parameters, in place (the M-step).

    Parameters
    ----------
    rules : RuleTable
        The rules.
    layout : Layout
        Where counts and parameters lie.
    counts : Estimates
        Counts of the rules with states; overwritten by the parameters.
    parameters : Estimates, default=None
        The counts of binary rules are first multiplied by these, if given.
    smoothing : float, default=0.0
        Part s of each binary rule's counts that is replaced by the product of their
        three marginals, each of which is mixed evenly with the overall distribution
        of the nonterminal's states; and part of P(x | a, h) that is replaced
        by P(x | a). For a rule that occurs n times the part is
        s (n + 10) / (n + 10 s). The counts of states stay the same.

    Returns
    -------
    totals : ndarray of float64, shape (n_states of all nonterminals,)
        Counts of the states.
    """
    states = layout.states(rules.lex_label)
    totals = np.bincount(
        states, weights=counts.lexical, minlength=layout.state_offset[-1]
    )
    factor = np.ones(0) if parameters is None else parameters.binary
    complete_counts(layout, factor, counts.binary, totals)
    normalize_rules(layout, totals, smoothing, _POOLING, _RARE, counts.binary)
    if smoothing > 0:
        _smooth_emissions(rules, layout, totals, smoothing, counts.lexical)
    counts.lexical[:] = divide(counts.lexical, totals[states])
    counts.root[:] = divide(counts.root, counts.root.sum())
    return totals


def _smooth_emissions(rules, layout, totals, smoothing, counts):
    """Mix P(x | a, h) with P(x | a), more for rare words, keeping the state totals."""
    length = layout.n_states[rules.lex_label]
    entry = np.repeat(np.arange(len(length)), length)
    of_entry = np.bincount(entry, weights=counts, minlength=len(length))
    of_label = np.bincount(
        rules.lex_label, weights=of_entry, minlength=len(layout.n_states)
    )
    states = layout.states(rules.lex_label)
    emitted = np.bincount(states, weights=counts, minlength=len(totals))
    part = smoothing * ((of_entry + _RARE) / (of_entry + smoothing * _RARE))[entry]
    counts *= 1.0 - part
    counts += part * divide(
        emitted[states] * of_entry[entry], of_label[rules.lex_label][entry]
    )
    after = np.bincount(states, weights=counts, minlength=len(totals))
    counts *= divide(emitted, after)[states]


def grammar_of_parameters(rules, layout, parameters, totals, *, alpha=1.0):
    """Make a grammar from maximum-likelihood parameters, with a smoothed lexicon.

    Parameters
    ----------
    rules : RuleCounts
        The rules and their counts.
    layout : Layout
        Where the parameters lie.
    parameters : Estimates
        The parameters.
    totals : ndarray of float64
        Counts of the states, see :func:`maximize`.
    alpha : float, default=1.0
        Strength of the lexicon's smoothing, see :func:`smooth_lexicon`.

    Returns
    -------
    LPCFG
    """
    lexicon, after = smoothed_emissions(
        rules, layout, parameters.lexical, totals, alpha=alpha
    )
    binary = parameters.binary
    if np.any(np.isin(rules.rule_parent, rules.lex_label)):
        # Nonterminals with words and with children share their probability.
        binary = binary.copy()
        n_rules = len(rules.rule_parent)
        divide_rows(layout, 0, n_rules, divide(after, totals), binary)
    return grammar_of_lexicon(rules, layout, lexicon, binary, parameters.root)


def grammar_of_lexicon(rules, layout, lexicon, binary, root):
    """Make a grammar from a smoothed lexicon and the other parameters.

    Parameters
    ----------
    rules : RuleTable
        The rules.
    layout : Layout
        Where `binary` and `root` lie.
    lexicon : SmoothedLexicon
        The lexical parameters.
    binary, root : ndarray of float64
        The other parameters.

    Returns
    -------
    LPCFG
    """
    arrays = GrammarArrays(
        n_states=layout.n_states,
        rule_parent=rules.rule_parent,
        rule_left=rules.rule_left,
        rule_right=rules.rule_right,
        rule_offset=layout.rule_offset,
        binary=binary,
        word_offset=lexicon.word_offset,
        lex_label=lexicon.lex_label,
        lex_offset=lexicon.lex_offset,
        lexical=lexicon.lexical,
        root_label=rules.root_label,
        root_offset=layout.root_offset,
        root=root,
    )
    return LPCFG.from_arrays(
        rules.nonterminals, lexicon.words, arrays, unknown_word=lexicon.unknown_word
    )


def smoothed_emissions(rules, layout, emissions, totals, *, alpha):
    """Smooth emission probabilities by the classes of words.

    Parameters
    ----------
    rules : RuleCounts
        The rules and their counts.
    layout : Layout
        Where the emissions lie.
    emissions : ndarray of float64
        P(x | a, h) of the lexical rules of `rules`.
    totals : ndarray of float64
        Counts of the states, see :func:`maximize`.
    alpha : float
        Strength, see :func:`smooth_lexicon`.

    Returns
    -------
    lexicon : SmoothedLexicon
        With probabilities instead of counts.
    totals : ndarray of float64
        Counts of the states after smoothing.
    """
    states = layout.states(rules.lex_label)
    counts = emissions * totals[states]
    lexicon = smooth_lexicon(rules, layout.n_states, counts, alpha=alpha)
    after = totals - np.bincount(states, weights=counts, minlength=len(totals))
    states = layout.states(lexicon.lex_label)
    after += np.bincount(states, weights=lexicon.lexical, minlength=len(totals))
    return lexicon._replace(lexical=divide(lexicon.lexical, after[states])), after


def coarse_pcfg(rules, *, alpha=1.0):
    """Make the plain PCFG of a treebank: relative frequencies, smoothed lexicon.

    Parameters
    ----------
    rules : RuleCounts
        The rules and their counts.
    alpha : float, default=1.0
        Strength of the lexicon's smoothing, see :func:`smooth_lexicon`.

    Returns
    -------
    LPCFG
        With one state per nonterminal.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.lpcfg import coarse_pcfg
    >>> from lpcfg_sk.treebank import count_rules
    >>> trees = Treebank(["(S (A x) (A y))", "(S (A x) (S (A x) (A x)))"])
    >>> grammar = coarse_pcfg(count_rules(trees), alpha=0)
    >>> grammar.lexical["A", "x"], grammar.binary["S", "A", "A"].ravel().round(3)
    (array([0.8]), array([0.667]))
    """
    layout = Layout.build(rules, np.ones(len(rules.nonterminals), dtype=np.int64))
    counts = Estimates(
        rules.rule_count.copy(), rules.lexical_count.copy(), rules.root_count.copy()
    )
    totals = maximize(rules, layout, counts)
    return grammar_of_parameters(rules, layout, counts, totals, alpha=alpha)


def divide(numerator, denominator):
    """Return the quotient, 0 where the denominator is 0."""
    denominator = np.broadcast_to(denominator, np.shape(numerator))
    out = np.zeros_like(numerator, dtype=np.float64)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def requested_states(m, nonterminals, counts):
    """Return the number of latent states that the user asks for.

    Parameters
    ----------
    m : int, mapping of str to int, or callable
        One number for all; a number for some nonterminals (1 for those not
        named); or ``m(nonterminal, count) -> int``, with the (weighted) number
        of occurrences.
    nonterminals : sequence of str
        Names.
    counts : array-like of float
        Number of occurrences of each.

    Returns
    -------
    ndarray of int64
        At least 1 each.

    Warns
    -----
    TreebankWarning
        If `m` names nonterminals that the trees do not have.

    Examples
    --------
    >>> from lpcfg_sk.lpcfg import requested_states
    >>> requested_states({"NP": 4}, ["NP", "VP"], [10, 10]).tolist()
    [4, 1]
    >>> requested_states(lambda a, n: min(8, n // 3), ["NP", "VP"], [9, 60]).tolist()
    [3, 8]
    """
    if callable(m):
        try:
            wanted = [m(a, c) for a, c in zip(nonterminals, counts, strict=True)]
        except TypeError as error:
            raise TypeError(f"m is called as m(nonterminal, count): {error}") from error
    elif hasattr(m, "items"):
        wanted = [m.get(a, 1) for a in nonterminals]
        # No error: a fold of cross-validation may lack a label.
        unknown = [a for a in m if a not in set(nonterminals)]
        if unknown:
            names = ", ".join(map(repr, unknown[:5])) + (", ..." if unknown[5:] else "")
            warn_caller(
                f"m names nonterminals that the trees do not have, which is ignored: "
                f"{names}",
                TreebankWarning,
            )
    else:
        wanted = [m] * len(nonterminals)
    for a, value in zip(nonterminals, wanted, strict=True):
        if not _is_whole(value) or value < 1:
            raise ValueError(
                f"m gives {value!r} latent states for {a!r}; a whole number from 1 on "
                "is needed."
            )
    return np.array(wanted, dtype=np.int64)


def _is_whole(value):
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return isinstance(value, Integral) or float(value).is_integer()


def independent_children(grammar):
    r"""Make the states of two children independent given rule and parent's state.

    Parameters
    ----------
    grammar : LPCFG
        A probabilistic grammar, or one of expected counts.

    Returns
    -------
    grammar : LPCFG
        In the form of Cohen et al. (2012), which remark 2 of the 2014 paper compares
        with its own:

        .. math:: p(a → b\,c | h_1, a) \; p(h_2 | h_1, a → b\,c) \;
            p(h_3 | h_1, a → b\,c)

        with the three factors that the given grammar has. Among the grammars of this
        form it is the closest in Kullback-Leibler divergence for each rule and state.

    Examples
    --------
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> from lpcfg_sk.lpcfg import independent_children
    >>> grammar = independent_children(make_lpcfg(m=3, random_state=0))
    >>> grammar.is_probabilistic
    True
    """
    binary = {}
    for rule, tensor in grammar.binary.items():
        left, right = tensor.sum(axis=2), tensor.sum(axis=1)
        total = left.sum(axis=1)[:, None, None]
        products = left[:, :, None] * right[:, None, :]
        binary[rule] = divide(products, total)
    return type(grammar).from_parameters(
        binary=binary,
        lexical=grammar.lexical,
        root=grammar.root,
        unknown_word=grammar.unknown_word,
    )
