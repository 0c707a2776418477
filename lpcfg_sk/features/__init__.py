"""Features of inside and outside trees."""

from lpcfg_sk.features._inside import InsideFeatures
from lpcfg_sk.features._node import Node
from lpcfg_sk.features._outside import OutsideFeatures

__all__ = ["InsideFeatures", "Node", "OutsideFeatures"]
