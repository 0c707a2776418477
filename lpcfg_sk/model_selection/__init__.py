"""Choice of the numbers of latent states by cross-validation."""

from lpcfg_sk.model_selection._state_search import LatentStateSearchCV

__all__ = ["LatentStateSearchCV"]
