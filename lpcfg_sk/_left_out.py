"""Fitted attributes that compact model files leave out."""


class LeftOutMixin:
    """Says of an attribute that a compact file left out how to keep it.

    A subclass lists in ``_left_out`` what no parse needs; see
    :func:`lpcfg_sk.save`.

    Examples
    --------
    >>> from lpcfg_sk._left_out import LeftOutMixin
    >>> class Learner(LeftOutMixin):
    ...     _left_out = ("projections_",)
    >>> learner = Learner()
    >>> learner.grammar_ = "S -> NP VP"  # fitted, loaded from a compact file
    >>> hasattr(learner, "projections_")
    False
    """

    _left_out: tuple = ()

    def __getattr__(self, name):
        # Called for missing attributes only.
        fitted = any(k.endswith("_") and not k.startswith("_") for k in vars(self))
        if fitted and name in type(self)._left_out:
            raise AttributeError(
                f"{type(self).__name__} was loaded from a compact file, which leaves "
                f"{name} out; fit it again and keep it by save(..., compact=False)"
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )
