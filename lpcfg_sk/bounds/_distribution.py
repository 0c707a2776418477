"""Constants of the distribution behind a treebank: section 3.1 of the paper."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.bounds._margin import between_0_and_1, not_negative
from lpcfg_sk.cfg import CFG, rules_of_trees
from lpcfg_sk.treebank import check_treebank


class DistributionConstants(NamedTuple):
    """What :func:`distribution_constants` returns.

    Attributes
    ----------
    alpha : float
        Largest number of rules of a derivation over the length of its string.
    L, r : float
        Probabilities of derivations decay: p(z) ≤ L r^|z|.
    q : float
        Λ(k)² r^k ≤ q^k. Not less than 1 where the assumption fails.
    B : float
        Largest expected count of a rule in a derivation.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.bounds import distribution_constants
    >>> constants = distribution_constants(Treebank(["(S (A a) (S b))", "(S b)"]))
    >>> constants.alpha, constants.q < 1
    (1.5, True)
    """

    alpha: float
    L: float
    r: float
    q: float
    B: float


class TailFit(NamedTuple):
    """Exponential tail of sentence lengths, what :func:`tail_fit` returns.

    Attributes
    ----------
    c, alpha : float
        The curve f(l) = c α^l.
    squared_error : float
        Sum of squared errors over the points that were held out.
    fit_error : float
        Sum of squared errors over the points that were fitted.
    mode : int
        Most frequent length; the tail begins after it.
    points : DataFrame
        One row per length of the tail: ``frequency``, ``curve``, and ``held_out``, the
        frequency in data that the fit has not seen (nan where there is none).

    Examples
    --------
    >>> from lpcfg_sk.bounds import tail_fit
    >>> fit = tail_fit([["a"] * l for l in (1, 1, 1, 1, 2, 2, 3, 4)])
    >>> fit.mode, fit.points.index.tolist()
    (1, [2, 3, 4])
    """

    c: float
    alpha: float
    squared_error: float
    fit_error: float
    mode: int
    points: pd.DataFrame


def tail_fit(treebank, *, held_out=None):
    r"""Fit an exponential curve to the tail of sentence lengths (figure 1).

    Parameters
    ----------
    treebank : Treebank
        Sentences, with or without trees.
    held_out : Treebank, default=None
        New data for the comparison. Where None, every second length of the tail is
        held out of the fit.

    Returns
    -------
    fit : TailFit

    Notes
    -----
    Least squares of :math:`f(l; c, α) = c α^l` to the relative frequencies of the
    lengths above the most frequent one, up to the largest; lengths that do not occur
    have frequency 0. (The paper prints :math:`c l^α`, which is not exponential
    and does not fit its parameters.) For a given α the best c is a ratio of sums, so
    the search is over α alone.

    Examples
    --------
    >>> from lpcfg_sk.bounds import tail_fit
    >>> sentences = [["a"] * l for l in range(1, 9) for _ in range(2 ** (9 - l))]
    >>> fit = tail_fit(sentences)
    >>> fit.mode, round(fit.alpha, 3), round(fit.squared_error, 6)
    (1, 0.5, 0.0)
    """
    frequency = _frequencies(treebank)
    mode = int(np.argmax(frequency))
    lengths = np.arange(mode + 1, len(frequency))
    tail = frequency[lengths]
    if held_out is None:
        fitted = np.arange(len(lengths)) % 2 == 0
        unseen = np.where(fitted, np.nan, tail)
    else:
        fitted = np.ones(len(lengths), dtype=bool)
        unseen = np.pad(_frequencies(held_out), (0, len(frequency)))[lengths]
    if fitted.sum() < 2:
        raise ValueError(
            f"the tail of sentence lengths has {len(lengths)} points above its most "
            f"frequent length {mode}; a fit needs at least "
            f"{2 if held_out is not None else 3}"
        )
    if np.count_nonzero(tail[fitted]) < 2:
        raise ValueError(
            "fewer than two lengths of the tail that is fitted occur in the treebank; "
            "there is no curve to fit"
        )
    c, alpha = _exponential(lengths[fitted], tail[fitted])
    curve = c * alpha**lengths
    points = pd.DataFrame(
        {"frequency": tail, "curve": curve, "held_out": unseen},
        index=pd.Index(lengths, name="length"),
    )
    return TailFit(
        c=c,
        alpha=alpha,
        squared_error=float(np.nansum((unseen - curve) ** 2)),
        fit_error=float(((tail - curve)[fitted] ** 2).sum()),
        mode=mode,
        points=points,
    )


def distribution_constants(treebank, grammar=None, *, r=None, derivations="sample"):
    r"""Estimate the constants of the assumptions on the distribution of derivations.

    Parameters
    ----------
    treebank : Treebank
        Trees, a sample of the distribution.
    grammar : CFG, default=None
        The grammar of which they are derivations; that of the treebank where None.
        Trees that it does not derive are left out, with a warning.
    r : float, default=None
        Base of the decay. None takes it from a regression.
    derivations : {"sample", "grammar"}, default="sample"
        Whether Λ(k) counts the different derivations of the sample, or all of the
        grammar. The second is what the paper says, takes time of the order of the
        grammar's size times the square of the longest derivation, and leaves no
        q < 1 for most treebank grammars. The first is what the proofs of propositions
        1, 2 and 3 use, for a distribution that is concentrated on what was seen.

    Returns
    -------
    constants : DistributionConstants

    Notes
    -----
    The length of a derivation is its number of rules, words included. The
    distribution p is the grammar with relative frequencies of rules.

    - α is the largest ratio of derivation length to string length, at least 1.
    - r is the slope of the least squares line of log p(z) over the length of z, and
      L the smallest number with p(z) ≤ L r^|z| on the sample.
    - q is the largest :math:`r Λ(k)^{2/k}` over the lengths k up to the longest
      derivation of the sample.
    - B is the largest mean count of a rule in a derivation.

    A larger `r` means a smaller L and a larger q. The bounds are for grammars in
    binary normal form: for their constants, pass ``form.transform(treebank)`` and
    ``form.grammar`` with ``form = grammar.to_binary_normal_form()``.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.bounds import distribution_constants
    >>> trees = ["(S (A a) (S b))", "(S b)", "(S (A a) (S (A a) (S b)))", "(S b)"]
    >>> constants = distribution_constants(Treebank(trees))
    >>> [round(float(value), 3) for value in constants]
    [1.667, 0.873, 0.655, 0.655, 1.0]
    """
    if derivations not in ("sample", "grammar"):
        raise ValueError(f"derivations is 'sample' or 'grammar', got {derivations!r}")
    if r is not None:
        between_0_and_1(r=r)
    treebank = check_treebank(treebank, estimator="distribution_constants", parsed=True)
    grammar = CFG.from_treebank(treebank) if grammar is None else grammar
    row, rule, derivable = rules_of_trees(grammar, treebank)
    if not derivable.any():
        raise ValueError(
            f"none of the {len(treebank)} trees is a derivation of the grammar"
        )
    if not derivable.all():
        warn_caller(
            f"{int((~derivable).sum())} of {len(treebank)} trees are no derivations of "
            "the grammar and were left out",
            UserWarning,
        )
    kept = derivable[row]
    row, rule = row[kept], rule[kept]
    n_rules = len(grammar.rules)
    length = np.bincount(row, minlength=len(treebank))[derivable]
    counts = np.bincount(rule, minlength=n_rules)
    log_p = np.bincount(
        row, weights=_log_frequencies(grammar, counts)[rule], minlength=len(treebank)
    )[derivable]
    if r is None:
        r = _decay(length, log_p)
    n_derivations = (
        count_derivations(grammar, int(length.max()))
        if derivations == "grammar"
        else _distinct(treebank[derivable], length)
    )
    log_growth = max(2 * math.log(n) / k for k, n in enumerate(n_derivations) if n > 0)
    return DistributionConstants(
        alpha=max(1.0, float((length / treebank.lengths[derivable]).max())),
        L=float(np.exp((log_p - length * np.log(r)).max())),
        r=float(r),
        q=float(r * np.exp(log_growth)),
        B=float(counts.max() / len(length)),
    )


def count_derivations(grammar, max_length):
    r"""Count the derivations of a grammar by their number of rules, Λ(k).

    Parameters
    ----------
    grammar : CFG
        Any grammar.
    max_length : int
        Largest number of rules.

    Returns
    -------
    counts : list of int, length ``max_length + 1``
        ``counts[k]`` is Λ(k), an exact integer.

    Notes
    -----
    A derivation from A is a rule and derivations of the symbols of its right-hand
    side, so :math:`Λ_A(k) = \sum_{A → β} Λ_β(k - 1)`, where the counts of a sequence
    are the convolution of those of its symbols.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.bounds import count_derivations
    >>> count_derivations(CFG.from_string("S -> S S | a"), 9)
    [0, 1, 0, 1, 0, 2, 0, 5, 0, 14]
    """
    not_negative(max_length=max_length)
    tables = grammar.tables()
    n_nonterminals = tables.n_nonterminals
    n_symbols = n_nonterminals + tables.n_terminals
    # counts[item][k]: derivations of a symbol, or of a prefix of a right-hand side, by
    # k rules. A terminal derives itself by none.
    counts = [[0] for _ in range(n_nonterminals)]
    counts += [[1] + [0] * max_length for _ in range(tables.n_terminals)]
    counts += [[] for _ in tables.trie_left]
    trie = list(zip(tables.trie_left.tolist(), tables.trie_right.tolist(), strict=True))
    rules = list(zip(tables.rule_lhs.tolist(), tables.rule_item.tolist(), strict=True))
    for k in range(max_length + 1):
        if k > 0:
            for symbol in range(n_nonterminals):
                counts[symbol].append(0)
            for lhs, item in rules:
                counts[lhs][k] += counts[item][k - 1]
        for t, (left, right) in enumerate(trie):
            prefix, added = counts[left], counts[right]
            if right >= n_nonterminals:
                total = prefix[k]
            else:
                total = sum(
                    prefix[k - j] * added[j] for j in range(1, k + 1) if added[j]
                )
            counts[n_symbols + t].append(total)
    return counts[tables.start]


def _frequencies(treebank):
    treebank = check_treebank(treebank, estimator="tail_fit")
    counts = np.bincount(treebank.lengths)
    return counts / counts.sum()


def _exponential(lengths, frequency):
    """Least squares of c α^l."""

    def scale(alpha):
        # Powers relative to the first length do not underflow.
        powers = alpha ** (lengths - lengths[0])
        return frequency @ powers / (powers @ powers), powers

    def loss(alpha):
        c, powers = scale(alpha)
        return ((frequency - c * powers) ** 2).sum()

    # The loss may have several minima; the best of a grid brackets the lowest.
    grid = np.linspace(0.0, 1.0, 401)[1:-1]
    best = int(np.argmin([loss(alpha) for alpha in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    alpha = minimize_scalar(
        loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    ).x
    return float(scale(alpha)[0] * alpha ** -float(lengths[0])), float(alpha)


def _log_frequencies(grammar, counts):
    """Logarithms of relative frequencies of the rules of each nonterminal."""
    lhs = grammar.tables().rule_lhs
    totals = np.bincount(lhs, weights=counts, minlength=len(grammar.nonterminals))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(counts / totals[lhs])


def _decay(length, log_p):
    """Base of the exponential decay of probabilities with length."""
    spread = length - length.mean()
    if not spread.any():
        # All derivations have one length: take the line through the origin.
        slope = log_p.mean() / length.mean()
    else:
        slope = spread @ log_p / (spread @ spread)
    if not slope < 0:
        raise ValueError(
            "the probabilities of these derivations do not fall with their length; "
            "pass r"
        )
    return float(np.exp(slope))


def _distinct(treebank, length):
    """Number of different trees by number of rules."""
    distinct = {}
    for i in range(len(treebank)):
        nodes = slice(*treebank.node_offsets[i : i + 2])
        tokens = slice(*treebank.token_offsets[i : i + 2])
        columns = treebank.label[nodes], treebank.size[nodes], treebank.token[tokens]
        distinct[tuple(column.tobytes() for column in columns)] = length[i]
    return np.bincount(list(distinct.values()))
