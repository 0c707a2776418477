"""Features of inside and outside trees."""

from lpcfg_sk.features._node import Node
from lpcfg_sk.features._node_features import InsideFeatures, OutsideFeatures

__all__ = ["InsideFeatures", "Node", "OutsideFeatures"]
