"""Features of inside and outside trees."""

from lpcfg_sk.features._node_features import InsideFeatures, OutsideFeatures
from lpcfg_sk.features._productions import Productions
from lpcfg_sk.features._templates import Node

__all__ = ["InsideFeatures", "Node", "OutsideFeatures"]
