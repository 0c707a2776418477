"""Result tables, displays, and differences of trees."""

from lpcfg_sk.inspection._chart import ChartDisplay
from lpcfg_sk.inspection._comparison import ComparisonDisplay, compare
from lpcfg_sk.inspection._curves import (
    ConvergenceDisplay,
    SingularValueDisplay,
    TailFitDisplay,
)
from lpcfg_sk.inspection._latent_states import (
    LatentStateDisplay,
    describe_state,
    state_table,
)
from lpcfg_sk.inspection._search import StateCurveDisplay, results_table
from lpcfg_sk.inspection._state_numbers import StateNumbersDisplay, state_numbers
from lpcfg_sk.inspection._tree_diff import tree_diff

__all__ = [
    "ChartDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "LatentStateDisplay",
    "SingularValueDisplay",
    "StateCurveDisplay",
    "StateNumbersDisplay",
    "TailFitDisplay",
    "compare",
    "describe_state",
    "results_table",
    "state_numbers",
    "state_table",
    "tree_diff",
]
