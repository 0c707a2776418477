"""Features of inside and outside trees."""

from lpcfg_sk.features._node import Node
from lpcfg_sk.features._node_features import InsideFeatures, OutsideFeatures
from lpcfg_sk.features._productions import Productions

__all__ = ["InsideFeatures", "Node", "OutsideFeatures"]

# Shared with other packages, but not public.
_shared = (Productions,)
