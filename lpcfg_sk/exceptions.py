"""Errors and warnings of the library."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "ChartMemoryError",
    "ConvergenceWarning",
    "NotFittedError",
    "NotStronglyConvergentError",
    "ParseFailureWarning",
    "TreebankFormatError",
    "TreebankWarning",
]


class TreebankFormatError(ValueError):
    """Text that is not a treebank, with the place where that shows.

    Parameters
    ----------
    message : str
        What was found and what was expected.
    file : str, default=None
        Name of the input.
    line, column : int, default=None
        Position of the fault, counted from 1.
    tree : int, default=None
        Number of the tree within the input, counted from 1.
    """

    def __init__(self, message, file=None, line=None, column=None, tree=None):
        super().__init__(message, file, line, column, tree)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.tree = tree

    def __str__(self):
        place = [self.file or "<input>"]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        if self.tree is not None:
            place.append(f"tree {self.tree}")
        return f"{', '.join(place)}: {self.message}"


class TreebankWarning(UserWarning):
    """Something in a treebank was left out or mended, and counted."""


class ParseFailureWarning(UserWarning):
    """Some sentences have no parse under the grammar."""


class ChartMemoryError(MemoryError):
    """A chart would not fit the memory that the user allows."""


class NotStronglyConvergentError(ValueError):
    """A weighted tree automaton whose sums over all trees diverge."""
