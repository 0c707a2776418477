"""Which brackets count: the built-in convention, and parameter files of EVALB."""

import os
import warnings
from dataclasses import dataclass, replace

from lpcfg_sk.exceptions import TreebankFormatError, TreebankWarning

_LISTS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
}
_PAIRS = {"EQ_LABEL": "eq_labels", "EQ_WORD": "eq_words"}
_NUMBERS = {
    "CUTOFF_LEN": "cutoff_len",
    "LABELED": "labeled",
    "MAX_ERROR": "max_error",
}

#: The node that a treebank or a reader wraps around a sentence, whose bracket no
#: figure of the literature counts; the empty label is that of an unlabelled root.
ROOT_LABELS = ("TOP", "ROOT", "S1", "VROOT", "")


@dataclass(frozen=True)
class ParsevalParameters:
    """What EVALB reads from a parameter file, and which roots do not count.

    Without arguments nothing is deleted and labels are compared as they are, as
    when EVALB runs without a parameter file: the root counts, too.

    Parameters
    ----------
    delete_labels : tuple of str, default=()
        ``DELETE_LABEL``. A pre-terminal with such a label is deleted together with its
        word; of a nonterminal only the bracket is deleted.
    delete_labels_for_length : tuple of str, default=()
        ``DELETE_LABEL_FOR_LENGTH``. Pre-terminals that the length does not count.
    eq_labels, eq_words : tuple of pairs of str, default=()
        ``EQ_LABEL``, ``EQ_WORD``. Each pair counts as equal, in both directions. The
        relation is not made transitive.
    quote_labels : tuple of str, default=()
        ``QUOTE_LABEL``. Pre-terminals that may stand over a quotation mark (``'``,
        ``"`` or ``/``). Where the numbers of words differ, a mark that one side
        deletes and the other side keeps is restored.
    cutoff_len : int, default=40
        ``CUTOFF_LEN``. The second block of totals is over sentences up to this length.
    labeled : bool, default=True
        ``LABELED``. Whether the labels of brackets must agree.
    max_error : int or None, default=10
        ``MAX_ERROR``. EVALB gives up at the second error sentence after this many.
        Here all sentences are evaluated, and a warning says so. None never warns.
    root_labels : tuple of str, default=()
        Nonterminals around a whole sentence, whose brackets do not count. The empty
        label stands for an unlabelled root. Unlike with ``DELETE_LABEL``, a word right
        below such a label stays a word of the sentence. EVALB has no such keyword, so
        a ``.prm`` file never sets it.

    See Also
    --------
    parseval : Compare two treebanks.

    Notes
    -----
    As in EVALB, a deleted nonterminal is found by its label after function tags were
    cut and by equal labels, a deleted pre-terminal by exactly its label.

    Examples
    --------
    >>> from lpcfg_sk.metrics import ParsevalParameters
    >>> collins = ParsevalParameters.collins()
    >>> collins.root_labels
    ('TOP', 'ROOT', 'S1', 'VROOT', '')
    >>> collins.delete_labels
    ('-NONE-', ',', ':', '``', "''", '.')
    >>> collins.adding(delete_labels=["-LRB-", "-RRB-"]).delete_labels[-2:]
    ('-LRB-', '-RRB-')
    """

    delete_labels: tuple = ()
    delete_labels_for_length: tuple = ()
    eq_labels: tuple = ()
    eq_words: tuple = ()
    quote_labels: tuple = ()
    cutoff_len: int = 40
    labeled: bool = True
    max_error: int | None = 10
    root_labels: tuple = ()

    def __post_init__(self):
        for name in (*_LISTS.values(), "root_labels"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"{name} is a sequence of labels, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        for name in _PAIRS.values():
            value = tuple(getattr(self, name))
            if not all(not isinstance(p, str) and len(p) == 2 for p in value):
                raise ValueError(f"{name} is a sequence of pairs, got {value!r}")
            object.__setattr__(self, name, tuple(tuple(pair) for pair in value))
        object.__setattr__(self, "labeled", bool(self.labeled))

    @classmethod
    def collins(cls):
        """Return the convention of the literature for the Penn Treebank.

        Returns
        -------
        parameters : ParsevalParameters
            The settings of ``COLLINS.prm``, which deletes ``TOP``, for every name of
            the root: ``TOP``, ``ROOT``, ``S1``, ``VROOT`` and unlabelled roots.
        """
        return cls(
            delete_labels=("-NONE-", ",", ":", "``", "''", "."),
            delete_labels_for_length=("-NONE-",),
            eq_labels=(("ADVP", "PRT"),),
            root_labels=ROOT_LABELS,
        )

    @classmethod
    def from_file(cls, path):
        """Read a parameter file of EVALB.

        Parameters
        ----------
        path : path-like
            A ``.prm`` file. ``DEBUG`` has no meaning here. Keywords that EVALB does not
            know are ignored with a warning.

        Returns
        -------
        parameters : ParsevalParameters
        """
        path = os.fspath(path)
        values = {name: [] for name in (*_LISTS.values(), *_PAIRS.values())}
        unknown = []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip()
                if line.startswith("#") or len(line) < 3:
                    continue
                if line[0].isspace():
                    keyword, value = line.strip(), ""
                else:
                    keyword, _, value = line.replace("\t", " ").partition(" ")
                    value = value.strip()
                place = {"file": path, "line": number}
                if keyword in _LISTS:
                    if not value:
                        raise TreebankFormatError(f"{keyword} without a label", **place)
                    values[_LISTS[keyword]].append(value)
                elif keyword in _PAIRS:
                    pair = tuple(value.split())
                    if len(pair) != 2:
                        raise TreebankFormatError(
                            f"{keyword} takes two values, got {value!r}", **place
                        )
                    values[_PAIRS[keyword]].append(pair)
                elif keyword in _NUMBERS:
                    try:
                        values[_NUMBERS[keyword]] = int(value)
                    except ValueError:
                        raise TreebankFormatError(
                            f"{keyword} takes a number, got {value!r}", **place
                        ) from None
                elif keyword != "DEBUG" and (keyword, value) != ("DISC_ONLY", "0"):
                    unknown.append(f"{keyword} (line {number})")
        if unknown:
            warnings.warn(
                f"{path}: EVALB has no parameter {', '.join(unknown)}; passed over",
                TreebankWarning,
                stacklevel=2,
            )
        return cls(**values)

    def adding(self, **lists):
        """Return parameters with further labels or pairs.

        Parameters
        ----------
        **lists
            ``delete_labels``, ``eq_labels`` and so on: what to append.

        Returns
        -------
        parameters : ParsevalParameters
        """
        return replace(self, **{k: (*getattr(self, k), *v) for k, v in lists.items()})


def check_parameters(params):
    """Return the parameters that "collins", a path, None or parameters stand for."""
    if isinstance(params, ParsevalParameters):
        return params
    if params is None:
        return ParsevalParameters()
    if params == "collins":
        return ParsevalParameters.collins()
    if isinstance(params, str | os.PathLike):
        try:
            return ParsevalParameters.from_file(params)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"params={os.fspath(params)!r} is no parameter file; expected "
                '"collins", the path of a .prm file, None or ParsevalParameters'
            ) from None
    raise TypeError(
        'params must be "collins", the path of a .prm file, None or '
        f"ParsevalParameters, got {type(params).__name__}"
    )
