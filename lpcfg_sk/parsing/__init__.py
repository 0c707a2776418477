"""From grammars to trees: pruning, charts, decoders and k-best lists."""

from lpcfg_sk.parsing._charts import marginals, sentence_log_prob

__all__ = ["marginals", "sentence_log_prob"]
