"""From grammars to trees: pruning, charts, decoders and k-best lists."""
