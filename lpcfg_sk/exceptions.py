"""Errors and warnings of the library."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "ChartMemoryError",
    "ConvergenceWarning",
    "NotFittedError",
    "NotStronglyConvergentError",
    "ParseError",
    "ParseFailureWarning",
    "TreebankFormatError",
    "TreebankWarning",
    "WorkerLossError",
]


class TreebankFormatError(ValueError):
    r"""Text that is not a treebank, with the position of the fault.

    Parameters
    ----------
    message : str
        What is wrong, and what was expected.
    file : str, default=None
        Name of the input.
    line, column : int, default=None
        Position of the fault, counted from 1.
    tree : int, default=None
        Number of the tree within the input, counted from 1.

    Examples
    --------
    >>> import io
    >>> from lpcfg_sk import TreebankFormatError, read_treebank
    >>> try:
    ...     read_treebank(io.StringIO("(S (A a) (B b))\n(S (A a)"))
    ... except TreebankFormatError as error:
    ...     print(error.line, error.tree)
    2 2
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
    r"""Part of a treebank was left out or repaired; the message says how much.

    Examples
    --------
    >>> import io, warnings
    >>> from lpcfg_sk import read_treebank
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     trees = read_treebank(io.StringIO("(S (A a))\n(S (A a)"), on_error="skip")
    >>> len(trees), caught[0].category.__name__
    (1, 'TreebankWarning')
    """


class ParseFailureWarning(UserWarning):
    """Some sentences have no parse under the grammar.

    Examples
    --------
    >>> import warnings
    >>> from lpcfg_sk import PCFG, Treebank
    >>> parser = PCFG().fit(Treebank(["(S (A a) (B b))"]))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     trees = parser.predict([["a", "b", "a"]])
    >>> caught[0].category.__name__
    'ParseFailureWarning'
    """


class ParseError(ValueError):
    """A sentence has no parse, and ``on_failure="raise"`` was asked for.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, Treebank
    >>> from lpcfg_sk.exceptions import ParseError
    >>> parser = PCFG(on_failure="raise").fit(Treebank(["(S (A a) (B b))"]))
    >>> try:
    ...     parser.predict([["a", "b", "a"]])
    ... except ParseError as error:
    ...     print(str(error)[:25])
    row 0 has no parse under
    """


class ChartMemoryError(MemoryError):
    """A chart would not fit the memory that the user allows.

    Parsers raise it with ``on_failure="raise"`` only.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, Treebank
    >>> from lpcfg_sk.exceptions import ChartMemoryError
    >>> parser = PCFG(max_memory=100, on_failure="raise")
    >>> parser = parser.fit(Treebank(["(S (A a) (B b))"]))
    >>> try:
    ...     parser.predict([["a", "b"]])
    ... except ChartMemoryError:
    ...     print("too long")
    too long
    """


class NotStronglyConvergentError(ValueError):
    """A weighted tree automaton whose sums over all trees diverge.

    It is raised where ``Σ |t| f(t)²`` is infinite, so there are no singular values.
    Then f is not strongly convergent, that is ``Σ |t| |f(t)|`` is infinite as well.

    Examples
    --------
    >>> from lpcfg_sk import WTA
    >>> from lpcfg_sk.exceptions import NotStronglyConvergentError
    >>> wta = WTA([1.0], [[[1.0]]], {"x": [1.0]})
    >>> try:
    ...     wta.gram_matrices()
    ... except NotStronglyConvergentError:
    ...     print("no singular values")
    no singular values
    """


class WorkerLossError(RuntimeError):
    """Workers of a cluster died so often that the work was given up.

    The estimator is unchanged.

    Examples
    --------
    >>> from lpcfg_sk.exceptions import WorkerLossError
    >>> issubclass(WorkerLossError, RuntimeError)
    True
    """
