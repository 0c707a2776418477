"""Synthetic grammars and treebanks."""
