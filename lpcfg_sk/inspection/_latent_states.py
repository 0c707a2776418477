from lpcfg_sk.inspection._displays import Display, fitted_learner
from lpcfg_sk.inspection._states import describe_state

__all__ = ["LatentStateDisplay"]


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
    def from_estimator(cls, estimator, nonterminal, *, top=8, ax=None, **kwargs):
        """Draw the states of a fitted learner.

        Parameters
        ----------
        estimator : EMLPCFG, PivotLPCFG, or a pipeline that ends in one
            Fitted learner with a non-negative grammar.
        nonterminal : str
            The nonterminal.
        top : int, default=8
            Number of expansions a state.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : LatentStateDisplay
        """
        learner = fitted_learner(estimator, ["grammar_"], cls.__name__)
        states = [
            describe_state(learner, nonterminal, h, top=top)
            for h in range(learner.grammar_.m.get(nonterminal, 1))
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
        n_bars = sum(len(state) for state in self.states)
        height = 1.2 + 0.22 * (n_bars + 2 * len(self.states))
        ax = self._axes(ax, figsize=(6.4, height))
        self.bars_, ticks, names, at = [], [], [], 0
        for h, state in enumerate(self.states):
            title = f"state {h}"
            if self.pivots:
                title += f", pivot {self.pivots[h]}"
            # The line above the bars of a state is its heading.
            place = {"transform": ax.get_yaxis_transform(), "va": "center"}
            ax.text(0.01, at, title, fontsize="small", fontweight="bold", **place)
            where = [at + 1 + i for i in range(len(state))]
            self.bars_.append(ax.barh(where, state["probability"], color=color))
            ticks += where
            names += state["expansion"].tolist()
            at += len(state) + 2
        ax.set_yticks(ticks, names, fontsize="small")
        ax.set_ylim(at - 1.2, -0.8)
        ax.set(xlabel="probability", title=f"Latent states of {self.nonterminal}")
        return self
