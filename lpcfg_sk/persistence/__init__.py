"""Fitted estimators on disk, without pickle."""

from lpcfg_sk.persistence._codec import load, save

__all__ = ["load", "save"]
