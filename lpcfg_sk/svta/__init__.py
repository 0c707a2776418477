"""Singular value tree automata: minimisation and compression."""
