"""Grammars and automata: parameters and what they compute."""
