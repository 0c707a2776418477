from sklearn.base import BaseEstimator

from lpcfg_sk.lpcfg._files import load_arrays, save_arrays
from lpcfg_sk.persistence._codec import decode, encode

__all__ = ["load", "save"]

_KIND = "estimator"
_VERSION = 1


def save(estimator, path):
    """Write an estimator or a pipeline to a file, without pickle.

    The file holds parameters and fitted attributes as arrays and JSON. It is put in
    place in one step: an interrupted save leaves the old file as it was.

    Parameters
    ----------
    estimator : estimator or Pipeline
        An estimator of this library, or a pipeline of them, fitted or not.
    path : str or path-like
        Where to write.

    Raises
    ------
    TypeError
        If a parameter or attribute could only be stored by pickle, for example a
        function given as a feature template.

    See Also
    --------
    load : Read it back.

    Notes
    -----
    Folders of caches (the parameter ``memory``) are not stored.

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk import MarginEMPCFG, CFG, load, save
    >>> grammar = CFG.from_string("S -> 'a' S | 'b'")
    >>> model = MarginEMPCFG(grammar).fit([["a", "b"], ["b"], ["a", "a", "b"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lpcfg")
    ...     save(model, path)
    ...     again = load(path)
    >>> bool((again.theta_ == model.theta_).all())
    True
    """
    if not isinstance(estimator, BaseEstimator):
        raise TypeError(
            f"save takes an estimator or a Pipeline, got {type(estimator).__name__}; "
            "grammars and automata have a save method of their own"
        )
    arrays = {}
    data = encode(estimator, arrays, type(estimator).__name__)
    save_arrays(path, _KIND, _VERSION, data, arrays)


def load(path):
    """Read an estimator that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator : estimator or Pipeline

    Raises
    ------
    ValueError
        If the file is damaged, foreign, or of a later version.

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk import CFG, MarginEMPCFG, load, save
    >>> model = MarginEMPCFG(CFG.from_string("S -> 'a' S | 'b'"), s=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lpcfg")
    ...     save(model, path)
    ...     load(path).s
    2.0
    """
    _, data, arrays = load_arrays(path, _KIND, _VERSION)
    try:
        estimator = decode(data, arrays)
    except ValueError as error:
        raise ValueError(f"{path} does not hold a valid model: {error}") from error
    if not isinstance(estimator, BaseEstimator):
        raise ValueError(f"{path} holds a {type(estimator).__name__}, no estimator")
    return estimator
