"""Fitted estimators on disk, without pickle."""

from lpcfg_sk.persistence._codec import load, save
from lpcfg_sk.persistence._consistency import check_state

__all__ = ["check_state", "load", "save"]
