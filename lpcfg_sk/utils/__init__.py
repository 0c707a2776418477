"""Validation and testing helpers."""
