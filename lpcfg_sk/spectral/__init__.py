"""Spectral learning of L-PCFGs."""
