"""Checks of the constants that bounds take."""


def check_constants(*, L=1.0, q=0.5, alpha=1.0, s=1.0, N=1):
    """Refuse impossible constants of a distribution."""
    positive(L=L, s=s, N=N)
    between_0_and_1(q=q)
    if not alpha >= 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}")


def positive(**values):
    """Refuse values that are not positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")


def not_negative(**values):
    """Refuse values that are negative."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name} must not be negative, got {value}")


def between_0_and_1(**values):
    """Refuse values outside the open unit interval."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
