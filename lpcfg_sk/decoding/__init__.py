"""Charts, pruning and decoders."""
