"""Checks of the constants that the margin bounds take."""

__all__ = ["below", "between_0_and_1", "check_constants", "positive"]


def check_constants(*, L=1.0, q=0.5, alpha=1.0, s=1.0, N=1):
    """Refuse constants of a distribution that cannot be."""
    positive(L=L, s=s, N=N)
    between_0_and_1(q=q)
    if not alpha >= 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}")


def below(epsilon, K):
    """Refuse a radius as large as the bound on the functions."""
    if not epsilon < K:
        raise ValueError(f"epsilon must be less than K={K}, got {epsilon}")


def positive(**values):
    """Refuse values that are not positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")


def between_0_and_1(**values):
    """Refuse values outside the open unit interval."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
