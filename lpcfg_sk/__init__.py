"""Latent-variable PCFGs and weighted tree automata, the scikit-learn way."""

__version__ = "0.1.0.dev0"
