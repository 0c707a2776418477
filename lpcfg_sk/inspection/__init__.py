"""Result tables, displays, differences of trees, and a page of errors."""

from lpcfg_sk.inspection._displays import (
    ConvergenceDisplay,
    SingularValueDisplay,
    TailFitDisplay,
)
from lpcfg_sk.inspection._latent_states import (
    LatentStateDisplay,
    StateNumbersDisplay,
    describe_state,
    state_numbers,
    state_table,
)
from lpcfg_sk.inspection._report import report
from lpcfg_sk.inspection._results import (
    ComparisonDisplay,
    StateCurveDisplay,
    compare,
    results_table,
)
from lpcfg_sk.inspection._trees import ChartDisplay, tree_diff

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
    "report",
    "results_table",
    "state_numbers",
    "state_table",
    "tree_diff",
]
