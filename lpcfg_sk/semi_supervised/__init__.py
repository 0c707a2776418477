"""Learning from trees and raw text."""

from lpcfg_sk.semi_supervised._self_training import SelfTrainingParser

__all__ = ["SelfTrainingParser"]
