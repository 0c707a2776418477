"""A run of EM: where it starts, and what it has reached."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._ragged import find_keys, ragged_indices
from lpcfg_sk.exceptions import NotFittedError
from lpcfg_sk.lpcfg import LPCFG, Estimates, maximize, requested_states
from lpcfg_sk.treebank import lexical_keys, rule_keys

__all__ = [
    "Run",
    "check_possible",
    "from_grammar",
    "last_parameters",
    "learner_grammar",
    "n_supported_states",
    "perturbed",
]

#: Largest factor by which the perturbation changes a parameter, up or down.
_NOISE = 3.0
#: Share of relative frequencies, divided evenly over the states, in the mix when EM
#: starts from another model.
_UNIFORM = 0.03
#: Occurrences of a nonterminal that a latent state needs.
_COUNT_PER_STATE = 10


class Run:
    """One run of EM: its parameters, and how it went.

    Parameters
    ----------
    layout : Layout
        Where parameters lie.
    parameters : Estimates
        Where the run starts.

    Attributes
    ----------
    lower_bounds : list of float
        Mean log likelihood of a tree before each iteration.
    scores : list of float
        Mean log probability of a held-out tree after each iteration; empty where no
        trees are held out.
    converged : bool
        Whether the run ended by `tol`.
    """

    def __init__(self, layout, parameters):
        self.layout = layout
        self.lower_bounds = []
        self.scores = []
        self.converged = False
        self._state = (parameters, None)

    @property
    def parameters(self):
        """The current parameters."""
        return self._state[0]

    @property
    def totals(self):
        """Expected counts of the states, None before the first iteration."""
        return self._state[1]

    def update(self, parameters, totals, lower_bound):
        """Take the parameters of the next iteration."""
        self.set_parameters(parameters, totals)
        self.lower_bounds.append(float(lower_bound))

    def set_parameters(self, parameters, totals):
        """Take other parameters."""
        # One assignment: an interrupt finds either the old or the new state.
        self._state = (parameters, totals)


def check_possible(lost, rules):
    """Raise an error if a starting point gives trees probability zero.

    Parameters
    ----------
    lost : float
        Weight of the trees of probability zero.
    rules : RuleCounts
        The rules of all trees.
    """
    if lost > 0:
        raise ValueError(
            f"Trees with {lost:g} of the weight {rules.weight:g} have probability zero "
            "under the starting point; start from one that can generate them."
        )


def n_supported_states(m, rules):
    """Numbers of states: those that `m` asks for, cut to what the trees support.

    Parameters
    ----------
    m : int, mapping of str to int, or callable
        The user's parameter.
    rules : RuleCounts
        The rules and their counts.

    Returns
    -------
    ndarray of int64, shape (n_nonterminals,)
    """
    counts = rules.label_count
    wanted = requested_states(m, rules.nonterminals, counts)
    supported = np.where(rules.occurs_below, counts // _COUNT_PER_STATE, 1)
    return np.minimum(wanted, np.maximum(supported, 1)).astype(np.int64)


def perturbed(rules, layout, rng):
    """Split the counts of a treebank evenly over states, and disturb them.

    Parameters
    ----------
    rules : RuleCounts
        The rules and their counts.
    layout : Layout
        Where parameters lie.
    rng : RandomState
        Source of the noise.

    Returns
    -------
    Estimates
        Probabilities; each is a relative frequency, divided evenly over the
        states of the children, times a random factor between 1/3 and 3 (uniform on
        the log scale), normalised (Matsuzaki, Miyao and Tsujii, 2005).
    """
    counts = _even_counts(rules, layout)
    for values in counts:
        values *= np.exp(rng.uniform(-1.0, 1.0, len(values)) * np.log(_NOISE))
    maximize(rules, layout, counts)
    return counts


def _even_counts(rules, layout):
    """Return the counts of a treebank, divided evenly over the states."""
    m = layout.n_states
    cells = np.diff(layout.rule_offset)
    return Estimates(
        np.repeat(rules.rule_count / cells, cells),
        np.repeat(rules.lexical_count / m[rules.lex_label], m[rules.lex_label]),
        np.repeat(rules.root_count / m[rules.root_label], m[rules.root_label]),
    )


def from_grammar(rules, layout, grammar):
    """Take the parameters of a grammar, mixed with some of the treebank's frequencies.

    Zeros stay zeros in EM; the mix gives each rule of the trees a positive probability.

    Parameters
    ----------
    rules : RuleCounts
        The rules and their counts.
    layout : Layout
        Where parameters lie; its numbers of states are those of `grammar`, or 1
        for nonterminals that it does not have.
    grammar : LPCFG
        Probabilistic grammar.

    Returns
    -------
    Estimates
    """
    even = _even_counts(rules, layout)
    maximize(rules, layout, even)
    a = grammar.arrays
    label = np.array([grammar._labels.index(s) for s in rules.nonterminals])
    word = np.array([grammar._words.index(s) for s in rules.words])
    n_labels = len(grammar.nonterminals)
    parts = (rules.rule_parent, rules.rule_left, rules.rule_right)
    keys = rule_keys(*(label[part] for part in parts), n_labels)
    rule = find_keys(a.rule_keys(), keys)
    keys = lexical_keys(word[rules.lex_word], label[rules.lex_label], n_labels)
    entry = find_keys(a.lexical_keys(), keys)
    root = find_keys(a.root_label, label[rules.root_label])
    pieces = (
        (layout.rule_offset, rule, a.rule_offset, a.binary),
        (layout.lex_offset, entry, a.lex_offset, a.lexical),
        (layout.root_offset, root, a.root_offset, a.root),
    )
    for values, piece in zip(even, pieces, strict=True):
        _mix(values, *piece)
    maximize(rules, layout, even)
    return even


def _mix(values, offset, position, source_offset, source):
    """Mix pieces of `source` into `values`, which keep a small part."""
    known = np.flatnonzero(position >= 0)
    length = np.diff(offset)[known]
    to = ragged_indices(offset[known], length)
    taken = source[ragged_indices(source_offset[position[known]], length)]
    values[to] = _UNIFORM * values[to] + (1.0 - _UNIFORM) * taken


def last_parameters(rules, layout, grammar, emissions):
    """Parameters of the last fit, if it was on the same rules.

    Parameters
    ----------
    rules : RuleTable
        The rules of the trees now.
    layout : Layout
        Where parameters lie.
    grammar : LPCFG
        Grammar of the last fit.
    emissions : tuple of ndarray
        Words, labels and unsmoothed emission probabilities of the last fit.

    Returns
    -------
    Estimates or None
        None where the rules differ.
    """
    a = grammar.arrays
    lex_word, lex_label, lexical = emissions
    same = (
        grammar.nonterminals == rules.nonterminals
        and grammar.words[: len(rules.words)] == rules.words
        and np.array_equal(a.rule_offset, layout.rule_offset)
        and np.array_equal(a.rule_parent, rules.rule_parent)
        and np.array_equal(a.rule_left, rules.rule_left)
        and np.array_equal(a.rule_right, rules.rule_right)
        and np.array_equal(a.root_label, rules.root_label)
        and np.array_equal(lex_word, rules.lex_word)
        and np.array_equal(lex_label, rules.lex_label)
        and len(lexical) == layout.lex_offset[-1]
    )
    if not same:
        return None
    return Estimates(a.binary.copy(), lexical.copy(), a.root.copy())


def learner_grammar(learner, trees):
    """Return the grammar of a learner, which is fitted if need be.

    Parameters
    ----------
    learner : estimator
        A learner of a probabilistic grammar.
    trees : TrainingTrees
        The trees to fit it to.

    Returns
    -------
    LPCFG
    """
    try:
        check_is_fitted(learner)
    except NotFittedError:
        X, weight = trees.corpus()
        learner = clone(learner).fit(X, sample_weight=weight)
    grammar = getattr(learner, "grammar_", None)
    if not isinstance(grammar, LPCFG):
        raise TypeError(
            "init must be a learner whose grammar_ is an LPCFG, got "
            f"{type(learner).__name__}."
        )
    if grammar.arrays.is_signed:
        raise ValueError(
            f"init={type(learner).__name__} gives a grammar with negative "
            "parameters, from which EM cannot start; use a learner of "
            "probabilities, such as PivotLPCFG or PCFG."
        )
    return grammar
