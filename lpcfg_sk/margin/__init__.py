"""Empirical risk minimisation with proper approximations."""
