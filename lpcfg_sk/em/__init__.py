"""Treebank PCFGs and expectation-maximisation of L-PCFGs."""
