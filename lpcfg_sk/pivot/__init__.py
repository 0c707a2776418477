"""Pivot learning of L-PCFGs and the matrix decomposition behind it."""
