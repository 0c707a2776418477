"""What latent states mean, and how many there are: tables and pictures."""

from collections import Counter
from textwrap import wrap

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.inspection._displays import Display, fitted_learner


def describe_state(model, nonterminal, state, *, top=10):
    """Most probable expansions of a latent state.

    Parameters
    ----------
    model : LPCFG, learner or pipeline that ends in one
        A grammar with non-negative parameters (EM, pivot, plain PCFG).
    nonterminal : str
        The nonterminal a.
    state : int
        The state h, from 0.
    top : int, default=10
        Number of words or rules.

    Returns
    -------
    table : DataFrame
        Expansions of state h, the most probable first: ``kind`` ("word" or
        "rule"), ``expansion``, its ``probability`` given (a, h), and its ``lift``: that
        probability over the mean of the states of a.

    See Also
    --------
    state_table : All states in one table.
    LatentStateDisplay : A picture of the states of a nonterminal.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> from lpcfg_sk.inspection import describe_state
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[0.25, 0.25], [0.25, 0.25]]]},
    ...     lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> describe_state(grammar, "A", 1)
       kind expansion  probability  lift
    0  word         y         0.75   2.0
    1  word         x         0.25   0.4
    """
    grammar, _ = _readable(model)
    if nonterminal not in grammar.m:
        some = ", ".join(grammar.nonterminals[:8])
        more = ", ..." if len(grammar.nonterminals) > 8 else ""
        raise ValueError(
            f"the grammar has no nonterminal {nonterminal!r}; it has {some}{more}"
        )
    m = grammar.m[nonterminal]
    if not 0 <= state < m:
        raise ValueError(f"{nonterminal!r} has the states 0 to {m - 1}, got {state}")
    kinds, names, weights = _expansions(grammar, nonterminal)[nonterminal]
    table = pd.DataFrame(
        {
            "kind": kinds,
            "expansion": names,
            "probability": weights[:, state],
            "lift": weights[:, state] / weights.mean(axis=1),
        }
    )
    table = table[table["probability"] > 0]
    return table.sort_values(
        "probability", ascending=False, kind="stable", ignore_index=True
    ).head(top)


def state_table(model, *, top=5):
    """All latent states of a grammar, one row per state.

    Parameters
    ----------
    model : LPCFG, learner or pipeline that ends in one
        A grammar with non-negative parameters.
    top : int, default=5
        Number of words and of rules to show.

    Returns
    -------
    table : DataFrame
        Columns ``nonterminal``, ``state``, ``entropy`` (in bits, of what the state
        rewrites to), ``words`` and ``rules``, the most probable ones, and ``pivot`` for
        learners that name the pivot feature of a state.

    See Also
    --------
    describe_state : One state, with numbers.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> from lpcfg_sk.inspection import state_table
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[0.25, 0.25], [0.25, 0.25]]]},
    ...     lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> state_table(grammar).round(2)
      nonterminal  state  entropy words rules
    0           A      0     0.00     x
    1           A      1     0.81  y, x
    2           S      0     0.00         A A
    """
    grammar, pivots = _readable(model)
    rows = []
    for label, (kinds, names, weights) in sorted(_expansions(grammar).items()):
        total = weights.sum(axis=0)
        share = weights / np.where(total > 0, total, 1.0)
        logs = np.log2(np.where(share > 0, share, 1.0))
        entropy = np.maximum(-(share * logs).sum(axis=0), 0.0)
        named = pivots.get(label) or [""] * weights.shape[1]
        for state in range(weights.shape[1]):
            order = np.argsort(-share[:, state], kind="stable")
            best = [i for i in order if share[i, state] > 0]
            words = [names[i] for i in best if kinds[i] == "word"][:top]
            rules = [names[i] for i in best if kinds[i] == "rule"][:top]
            row = (label, state, entropy[state], ", ".join(words), ", ".join(rules))
            rows.append((*row, named[state]))
    columns = ["nonterminal", "state", "entropy", "words", "rules", "pivot"]
    table = pd.DataFrame(rows, columns=columns)
    return table if pivots else table.drop(columns="pivot")


def _readable(model):
    """Grammar of a model with readable states, and its pivots."""
    learner = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(learner, "to_lpcfg"):
        learner = learner.to_lpcfg()
    grammar = getattr(learner, "grammar_", learner)
    if grammar.arrays.is_signed:
        raise ValueError(
            "the states of a grammar with negative parameters have no meaning one by "
            "one: a spectral grammar is known up to an invertible transform only; use "
            "PivotLPCFG or EMLPCFG to read states"
        )
    return grammar, getattr(learner, "pivots_", {})


def _expansions(grammar, only=None):
    """For each nonterminal, or one, its expansions and P(expansion | a, h)."""
    expansions = {}
    for (a, b, c), tensor in grammar.binary.items():
        if only in (None, a):
            entry = ("rule", f"{b} {c}", tensor.sum(axis=(1, 2)))
            expansions.setdefault(a, []).append(entry)
    for (a, x), vector in grammar.lexical.items():
        if only in (None, a):
            expansions.setdefault(a, []).append(("word", x, np.asarray(vector)))
    return {
        a: ([k for k, _, _ in e], [n for _, n, _ in e], np.array([v for *_, v in e]))
        for a, e in expansions.items()
    }


#: Characters of a line of a heading, and of the name of an expansion.
_HEADING_WIDTH = 64
_NAME_WIDTH = 32


class LatentStateDisplay(Display):
    """What the latent states of a nonterminal mean: words, rules and pivots.

    Parameters
    ----------
    nonterminal : str
        The nonterminal.
    states : list of DataFrame
        Expansions of each state, see :func:`describe_state`.
    pivots : list of str, default=None
        The pivot feature of each state.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        Bars of each state.

    Examples
    --------
    >>> import pandas as pd
    >>> from lpcfg_sk.inspection import LatentStateDisplay
    >>> state = pd.DataFrame({"expansion": ["dog", "cat"], "probability": [0.7, 0.3]})
    >>> display = LatentStateDisplay("NN", [state, state])
    >>> len(display.plot().bars_)
    2
    """

    def __init__(self, nonterminal, states, pivots=None):
        self.nonterminal = nonterminal
        self.states = states
        self.pivots = pivots

    @classmethod
    def from_estimator(
        cls, estimator, nonterminal=None, *, top=None, ax=None, **kwargs
    ):
        """Draw the states of a fitted learner.

        Parameters
        ----------
        estimator : EMLPCFG, PivotLPCFG, or a pipeline that ends in one
            Fitted learner with a non-negative grammar.
        nonterminal : str, default=None
            The nonterminal; where None, the one with the most rules of those with
            several states.
        top : int, default=None
            Number of expansions per state; where None, 8, or 4 if there are more than
            six states.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : LatentStateDisplay
        """
        learner = fitted_learner(estimator, ["grammar_"], cls.__name__)
        if nonterminal is None:
            m = learner.grammar_.m
            n_rules = Counter(dict.fromkeys(m, 0))
            n_rules.update(a for a, _, _ in learner.grammar_.binary)
            nonterminal = max(m, key=lambda a: (m[a] > 1, n_rules[a], a))
        n_states = learner.grammar_.m.get(nonterminal, 1)
        if top is None:
            top = 8 if n_states <= 6 else 4
        states = [
            describe_state(learner, nonterminal, h, top=top) for h in range(n_states)
        ]
        pivots = getattr(learner, "pivots_", {}).get(nonterminal)
        return cls(nonterminal, states, pivots).plot(ax, **kwargs)

    def plot(self, ax=None, *, color="C0"):
        """Draw the expansions of each state as bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        color : str, default="C0"
            Colour of the bars.

        Returns
        -------
        display : LatentStateDisplay
        """
        headings = [f"state {h}" for h in range(len(self.states))]
        if self.pivots:
            pairs = zip(headings, self.pivots, strict=True)
            headings = [f"{heading}, pivot {pivot}" for heading, pivot in pairs]
        headings = [wrap(heading, _HEADING_WIDTH) for heading in headings]
        names = [
            [wrap(name, _NAME_WIDTH) or [""] for name in state["expansion"]]
            for state in self.states
        ]
        n_lines = sum(map(len, headings)) + sum(len(n) for own in names for n in own)
        ax = self._axes(ax, figsize=(6.4, 1.2 + 0.19 * (n_lines + len(headings))))
        place = {"transform": ax.get_yaxis_transform(), "va": "center"}
        self.bars_, ticks, at = [], [], 0
        for state, heading, own in zip(self.states, headings, names, strict=True):
            # The lines above the bars of a state are its heading.
            middle = at + (len(heading) - 1) / 2
            text = "\n".join(heading)
            ax.text(0.01, middle, text, fontsize="small", fontweight="bold", **place)
            at += len(heading)
            where = []
            for name in own:
                where.append(at + (len(name) - 1) / 2)
                at += len(name)
            self.bars_.append(ax.barh(where, state["probability"], color=color))
            ticks += where
            at += 1
        labels = ["\n".join(name) for own in names for name in own]
        ax.set_yticks(ticks, labels, fontsize="small")
        ax.set_ylim(at - 1.2, -0.8)
        # The lower axis of a high picture is out of sight.
        ax.tick_params(top=True, labeltop=True)
        ax.set(xlabel="probability", title=f"Latent states of {self.nonterminal}")
        return self


def state_numbers(estimator):
    """Tabulate the numbers of latent states of all nonterminals.

    Parameters
    ----------
    estimator : SpectralLPCFG, a pipeline of one, or LatentStateSearchCV
        Fitted.

    Returns
    -------
    table : DataFrame
        One row per nonterminal, the most frequent first: ``nonterminal``, ``count``,
        ``m``; for a search only those that it searched, with the number ``base`` with
        which it began.

    Examples
    --------
    >>> from lpcfg_sk import SpectralLPCFG, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> from lpcfg_sk.inspection import state_numbers
    >>> parser = make_parser(SpectralLPCFG(m="singular_values", m_max=4))
    >>> state_numbers(parser.fit(load_toy(60))).head(2)
      nonterminal  count  m
    0          NP  365.0  3
    1          DT  202.0  3
    """
    searched = hasattr(estimator, "base_m_")
    if searched:
        check_is_fitted(estimator)
        learner = estimator
    else:
        learner = fitted_learner(estimator, ["counts_"], "state_numbers")
    names = list(learner.counts_)
    columns = {
        "nonterminal": names,
        "count": [learner.counts_[a] for a in names],
        "m": [learner.m_[a] for a in names],
    }
    if searched:
        columns["base"] = [learner.base_m_[a] for a in names]
    table = pd.DataFrame(columns)
    order = ["count", "nonterminal"]
    return table.sort_values(order, ascending=[False, True], ignore_index=True)


class StateNumbersDisplay(Display):
    """Numbers of latent states of the most frequent nonterminals.

    Parameters
    ----------
    table : DataFrame
        Columns ``nonterminal``, ``m``, and perhaps ``base``, see
        :func:`state_numbers`.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        One bar per nonterminal.
    line_ : matplotlib Line2D or None
        Where a search began.

    Examples
    --------
    >>> import pandas as pd
    >>> from lpcfg_sk.inspection import StateNumbersDisplay
    >>> table = pd.DataFrame({"nonterminal": ["NP", "DT"], "m": [16, 4]})
    >>> StateNumbersDisplay(table).plot().ax_.get_xlabel()
    'latent states'
    """

    def __init__(self, table):
        missing = {"nonterminal", "m"} - set(table.columns)
        if missing:
            raise ValueError(f"the table has no columns {sorted(missing)}")
        self.table = table

    @classmethod
    def from_estimator(cls, estimator, *, most=20, ax=None, **kwargs):
        """Draw the numbers of a fitted learner or search.

        Parameters
        ----------
        estimator : SpectralLPCFG, a pipeline of one, or LatentStateSearchCV
            Fitted.
        most : int, default=20
            How many nonterminals at most.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : StateNumbersDisplay
        """
        return cls(state_numbers(estimator).head(most)).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw one bar per nonterminal, the most frequent on top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to ``Axes.barh``.

        Returns
        -------
        display : StateNumbersDisplay
        """
        ax = self._axes(ax)
        place = np.arange(len(self.table))
        self.bars_ = ax.barh(place, self.table["m"], **kwargs)
        self.line_ = None
        if "base" in self.table:
            (self.line_,) = ax.plot(
                self.table["base"], place, "|", color="0.2", label="before the search"
            )
            ax.legend(fontsize="small")
        ax.set_yticks(place, self.table["nonterminal"])
        # Axes that are drawn on again are inverted already.
        ax.yaxis.set_inverted(True)
        ax.set(xlabel="latent states", ylabel="nonterminal")
        self._whole_ticks()
        return self
