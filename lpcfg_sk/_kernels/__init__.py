"""Compiled loops over plain arrays; nothing here imports the rest of the package."""
