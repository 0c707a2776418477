"""Scores of trees and of models.

:func:`parseval` compares trees as EVALB does, sentence by sentence and in total. The
built-in settings leave out the root (``TOP``, ``ROOT``, ``S1``, ``VROOT`` or no label),
as figures of the literature do; a ``.prm`` file is followed to the letter. All others
count a sentence without a parse as a failure: :func:`f1_score`,
:func:`bracket_counts`, :func:`label_report`, :func:`length_report`,
:func:`bootstrap_ci`, :func:`paired_bootstrap` and :func:`parseval_scorer`.
:func:`log_likelihood_scorer` and :func:`perplexity` judge probabilities.

A score (:func:`f1_score`, ``parser.score``, scorers and their intervals) is a number
from 0 to 1, as in scikit-learn. The columns ``precision``, ``recall`` and ``f1`` of
tables are in percent, as in EVALB.
"""

from lpcfg_sk.metrics._alignment import ParsevalParameters, align_treebanks
from lpcfg_sk.metrics._bootstrap import (
    BootstrapInterval,
    PairedBootstrap,
    bootstrap_ci,
    paired_bootstrap,
)
from lpcfg_sk.metrics._parseval import (
    parseval,
    parseval_files,
    parseval_report,
    parseval_summary,
)
from lpcfg_sk.metrics._scores import (
    BracketCounts,
    bracket_counts,
    f1_score,
    label_report,
    length_report,
    log_likelihood_scorer,
    parseval_scorer,
    perplexity,
)
from lpcfg_sk.metrics._tree_perplexity import TreePerplexity, tree_perplexity

__all__ = [
    "BootstrapInterval",
    "BracketCounts",
    "PairedBootstrap",
    "ParsevalParameters",
    "TreePerplexity",
    "bootstrap_ci",
    "bracket_counts",
    "f1_score",
    "label_report",
    "length_report",
    "log_likelihood_scorer",
    "paired_bootstrap",
    "parseval",
    "parseval_files",
    "parseval_report",
    "parseval_scorer",
    "parseval_summary",
    "perplexity",
    "tree_perplexity",
]
