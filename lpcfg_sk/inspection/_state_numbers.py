"""Numbers of latent states of the nonterminals: a table and its picture."""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.inspection._display import Display, fitted_learner


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
        ``m``; for a search only those that it searched, with the number ``base`` by
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
