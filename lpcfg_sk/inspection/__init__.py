"""Result tables, displays and drawings."""

from lpcfg_sk.inspection._chart import ChartDisplay
from lpcfg_sk.inspection._compare import compare
from lpcfg_sk.inspection._comparison import ComparisonDisplay
from lpcfg_sk.inspection._convergence import ConvergenceDisplay
from lpcfg_sk.inspection._latent_states import LatentStateDisplay
from lpcfg_sk.inspection._results import results_table
from lpcfg_sk.inspection._singular_values import SingularValueDisplay
from lpcfg_sk.inspection._state_curve import StateCurveDisplay
from lpcfg_sk.inspection._states import describe_state, state_table
from lpcfg_sk.inspection._tail import TailFitDisplay
from lpcfg_sk.inspection._tree_diff import tree_diff

__all__ = [
    "ChartDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "LatentStateDisplay",
    "SingularValueDisplay",
    "StateCurveDisplay",
    "TailFitDisplay",
    "compare",
    "describe_state",
    "results_table",
    "state_table",
    "tree_diff",
]
