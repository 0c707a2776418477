"""From grammars to trees: pruning, charts, decoders and k-best lists."""

from lpcfg_sk.parsing._bracket_marginals import (
    Brackets,
    BracketTable,
    bracket_frame,
    bracket_trees,
    flat_brackets,
)
from lpcfg_sk.parsing._chart_parser import BRACKET_PENALTY, ChartParser
from lpcfg_sk.parsing._decoders import assemble
from lpcfg_sk.parsing._every_row import (
    ON_FAILURE,
    ParserMixin,
    RowReport,
    parse_every_row,
)
from lpcfg_sk.parsing._parser import Parser
from lpcfg_sk.parsing._sentences import (
    chart_log_probs,
    chart_marginals,
    map_row_ranges,
    map_sentences,
    marginals,
    sentence_log_prob,
)

__all__ = ["Parser", "marginals", "sentence_log_prob"]
