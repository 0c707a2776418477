"""Estimators in files, as plain data and arrays.

Files hold parameters and fitted attributes, never code. Reading a file can only make
objects of the classes named here: estimators and models of this library,
scikit-learn's ``Pipeline``, and plain containers.
"""

import inspect
import math
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch

from lpcfg_sk._files import checked_csr, load_arrays, save_arrays
from lpcfg_sk.automata import CPCompressor, SVTAMinimizer
from lpcfg_sk.cfg import MarginEMPCFG
from lpcfg_sk.em import EMLPCFG, PCFG
from lpcfg_sk.ensemble import VotingParser
from lpcfg_sk.features import InsideFeatures, OutsideFeatures, Productions
from lpcfg_sk.language_model import (
    AggregateMarkovLM,
    InterpolatedLM,
    KneserNeyLM,
    NGramTable,
)
from lpcfg_sk.model_selection import LatentStateSearchCV
from lpcfg_sk.parsing import Parser
from lpcfg_sk.persistence._consistency import check_state
from lpcfg_sk.persistence._values import make_value, value_state
from lpcfg_sk.pivot import PivotLPCFG
from lpcfg_sk.semi_supervised import SelfTrainingParser
from lpcfg_sk.spectral import Projection, SpectralLPCFG
from lpcfg_sk.treebank import RareWords, RuleCounts, TreeBinarizer

_KIND = "estimator"
_VERSION = 2
_MARK = "$"

_ESTIMATORS = (
    AggregateMarkovLM,
    CPCompressor,
    EMLPCFG,
    InsideFeatures,
    InterpolatedLM,
    KneserNeyLM,
    LatentStateSearchCV,
    MarginEMPCFG,
    OutsideFeatures,
    PCFG,
    PivotLPCFG,
    RareWords,
    SVTAMinimizer,
    SelfTrainingParser,
    SpectralLPCFG,
    TreeBinarizer,
    VotingParser,
)

# Attributes of parts of estimators that are neither named tuples nor dataclasses.
_ATTRIBUTES = {
    Productions: {"labels", "words", "rule_keys", "lexical_keys"},
    NGramTable: {
        "history_keys",
        "keys",
        "outcome",
        "discounts",
        "proba",
        "backoff",
        "offsets",
    },
}

# Every class that a file can name. Names in files stay when a class gets another name.
_CLASSES = {cls.__name__: cls for cls in _ESTIMATORS} | {
    "Productions": Productions,
    "Projection": Projection,
    "RuleInventory": RuleCounts,
    "_Level": NGramTable,
}
_NAMES = {cls: name for name, cls in _CLASSES.items()}

# Values that reproduce older models for parameters added later with another default.
_BEFORE = {KneserNeyLM: {"start_symbols": "full"}}

# A cache folder is of no use on another machine. Joblib's caches are pickles, so a file
# must not be able to choose the folder from which they are read.
_NOT_STORED = "memory"


def save(estimator, path, *, compact=True):
    """Write an estimator or a pipeline to a file, without pickle.

    The file holds parameters and fitted attributes as arrays and JSON. It is put in
    place in one step: an interrupted save leaves the old file unchanged.

    Parameters
    ----------
    estimator : estimator or Pipeline
        An estimator of this library, or a pipeline of them, fitted or not.
    path : str or path-like
        Where to write.
    compact : bool, default=True
        Whether to store only what parsing needs, in about a tenth of the space:
        grammars in single precision, and not the features and projections of
        :class:`SpectralLPCFG` and :class:`PivotLPCFG`, which are needed only by
        :meth:`SpectralLPCFG.transform` and to study a fit. False keeps every fitted
        attribute, to the last bit.

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

    After :func:`load`, an attribute that a compact file leaves out raises an
    ``AttributeError`` that says so. "Model files" in the user guide describes how
    grammars are stored.

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
            "grammars, automata and treebanks have a save method of their own"
        )
    arrays = {}
    data = encode(estimator, arrays, type(estimator).__name__, compact=compact)
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


def encode(value, arrays, where="estimator", *, compact=False):
    """Turn a value into JSON data and separate arrays.

    Parameters
    ----------
    value : object
        An estimator, or something found in one.
    arrays : dict of str to ndarray
        Arrays are added here under new names.
    where : str, default="estimator"
        Path to the value, for messages.
    compact : bool, default=False
        Whether to leave out what parsing does not need.

    Returns
    -------
    data : JSON data

    Raises
    ------
    TypeError
        If the value holds something that only pickle could store, such as a function.
    """
    return _Encoder(arrays, compact).encode(value, where)


def decode(data, arrays):
    """Rebuild a value that `encode` turned into data and arrays.

    Parameters
    ----------
    data : JSON data
        Result of `encode`.
    arrays : dict of str to ndarray
        The arrays that `encode` added.

    Returns
    -------
    value : object

    Raises
    ------
    ValueError
        If the data is not what `encode` writes.
    """
    try:
        return _Decoder(arrays).decode(data)
    except (
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(f"the file does not describe an estimator: {error}") from error


class _Encoder:
    """State of one `encode`: the arrays, and the objects written so far."""

    def __init__(self, arrays, compact):
        self.arrays = arrays
        self.compact = compact
        # Whether the steps of a pipeline that ends in a learner are being written.
        self.in_parser = False
        # The grammar that prunes the charts of the learner that is being written.
        self.pruner = None
        self.written = {}

    def encode(self, value, where):
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and not isinstance(value, np.integer):
            return int(value)
        if isinstance(value, float) and not isinstance(value, np.floating):
            finite = math.isfinite(value)
            return value if finite else {_MARK: "float", "text": str(value)}
        if isinstance(value, np.generic):
            array = np.asarray(value).reshape(1)
            return {_MARK: "scalar", "value": self.encode(array, where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if scipy.sparse.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, pd.Series | pd.DataFrame):
            return self._pandas(value, where)
        if isinstance(value, list):
            return [self.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if isinstance(value, dict):
            return self._dict(value, where)
        if isinstance(value, set | frozenset):
            items = [self.encode(v, where) for v in sorted(value)]
            return {_MARK: type(value).__name__, "items": items}
        if type(value) is tuple:
            return {_MARK: "tuple", "items": self.encode(list(value), where)}
        return self._object(value, where)

    def _array(self, value, where):
        if value.dtype.kind in "biufc":
            name = f"a{len(self.arrays)}"
            self.arrays[name] = value
            return {_MARK: "array", "name": name}
        if value.dtype.kind in "OUT":
            flat = [self.encode(v, where) for v in value.ravel().tolist()]
            return {_MARK: "objects", "shape": list(value.shape), "items": flat}
        raise TypeError(
            f"{where} is an array of dtype {value.dtype}, which cannot be saved"
        )

    def _sparse(self, value, where):
        csr = value.tocsr()
        parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
        return {
            _MARK: "sparse",
            "shape": list(csr.shape),
            **{k: self.encode(v, where) for k, v in parts.items()},
        }

    def _pandas(self, value, where):
        index = self.encode(np.asarray(value.index), where)
        if isinstance(value, pd.Series):
            data = self.encode(value.to_numpy(), where)
            return {_MARK: "series", "index": index, "values": data, "name": value.name}
        columns = [
            [name, self.encode(value[name].to_numpy(), where)] for name in value.columns
        ]
        return {_MARK: "frame", "index": index, "columns": columns}

    def _dict(self, value, where):
        items = [
            [self.encode(k, where), self.encode(v, f"{where}[{k!r}]")]
            for k, v in value.items()
        ]
        return {_MARK: "bunch" if isinstance(value, Bunch) else "dict", "items": items}

    def _object(self, value, where):
        """Write an object once, however often it occurs."""
        if id(value) in self.written:
            return {_MARK: "same", "number": self.written[id(value)][0]}
        data = self._new_object(value, where)
        # While the object is kept, no other object can get its id.
        number = len(self.written)
        self.written[id(value)] = number, value
        return {**data, "number": number}

    def _new_object(self, value, where):
        prunes = value is self.pruner
        stored = value_state(value, compact=self.compact, prunes=prunes)
        if stored is not None:
            name, state = stored
            return {_MARK: "value", "of": name, "state": self.encode(state, where)}
        if type(value) in (Parser, Pipeline):
            return self._pipeline(value)
        cls = type(value)
        if cls not in _NAMES:
            raise TypeError(
                f"{where} is a {cls.__module__}.{cls.__qualname__}, which cannot be "
                "saved without pickle; use a named option, a number or a dict instead, "
                "save best_estimator_ of a search, or use joblib.dump"
            )
        if isinstance(value, tuple):
            state = value._asdict()
        elif is_dataclass(value):
            state = {f.name: getattr(value, f.name) for f in fields(value)}
        else:
            left_out = {_NOT_STORED}
            if self.compact and (self.in_parser or hasattr(value, "predict")):
                left_out.update(getattr(cls, "_left_out", ()))
            state = {k: v for k, v in vars(value).items() if k not in left_out}
            if state.get("coarse_") is not state.get("grammar_"):
                self.pruner = state.get("coarse_")
        return {
            _MARK: "object",
            "of": _NAMES[cls],
            # Sorted, so that equal models make equal files.
            "state": {k: self.encode(state[k], f"{where}.{k}") for k in sorted(state)},
        }

    def _pipeline(self, value):
        before, self.in_parser = self.in_parser, hasattr(value.steps[-1][1], "predict")
        steps = [[name, self.encode(s, name)] for name, s in value.steps]
        self.in_parser = before
        return {_MARK: "pipeline", "steps": steps, "verbose": bool(value.verbose)}


class _Decoder:
    """State of one `decode`: the arrays, and the objects made so far."""

    def __init__(self, arrays):
        self.arrays = dict(arrays)
        self.made = {}
        self._kinds = {
            "float": lambda data: float(data["text"]),
            "scalar": lambda data: self.decode(data["value"])[0],
            # Each array is used once. Otherwise a small file could refer to one array
            # many times and fill the memory with copies.
            "array": lambda data: self.arrays.pop(data["name"]),
            "objects": self._objects,
            "sparse": self._sparse,
            "series": self._series,
            "frame": self._frame,
            "dict": self._dict,
            "bunch": lambda data: Bunch(**self._dict(data)),
            "tuple": lambda data: tuple(self.decode(data["items"])),
            "set": lambda data: set(self.decode(data["items"])),
            "frozenset": lambda data: frozenset(self.decode(data["items"])),
            "same": lambda data: self.made[data["number"]],
            "value": lambda data: make_value(data["of"], self.decode(data["state"])),
            "pipeline": self._pipeline,
            "object": self._object,
        }

    def decode(self, data):
        if isinstance(data, list):
            # Most data are lists of words, which need no call per item.
            return [self.decode(v) if type(v) in (list, dict) else v for v in data]
        if not isinstance(data, dict):
            return data
        kind = data[_MARK]
        if kind not in self._kinds:
            raise ValueError(f"unknown kind of data {kind!r}")
        value = self._kinds[kind](data)
        if kind in ("value", "pipeline", "object"):
            self.made[data.get("number")] = value
        return value

    def _objects(self, data):
        out = np.empty(len(data["items"]), dtype=object)
        out[:] = self.decode(data["items"])
        return out.reshape(data["shape"])

    def _sparse(self, data):
        parts = tuple(self.decode(data[k]) for k in ("data", "indices", "indptr"))
        return checked_csr(*parts, data["shape"])

    def _series(self, data):
        index = self.decode(data["index"])
        return pd.Series(self.decode(data["values"]), index=index, name=data["name"])

    def _frame(self, data):
        columns = {str(name): self.decode(v) for name, v in data["columns"]}
        return pd.DataFrame(columns, index=self.decode(data["index"]))

    def _dict(self, data):
        return {self.decode(k): self.decode(v) for k, v in data["items"]}

    def _pipeline(self, data):
        steps = [(str(n), self.decode(s)) for n, s in data["steps"]]
        if not all(
            isinstance(s, BaseEstimator) or s == "passthrough" for _, s in steps
        ):
            raise ValueError("a step of the pipeline is no estimator")
        # Files do not distinguish a Parser from a Pipeline, which older releases wrote.
        parses = bool(steps) and hasattr(steps[-1][1], "span_marginals")
        return (Parser if parses else Pipeline)(steps, verbose=bool(data["verbose"]))

    def _object(self, data):
        name = data["of"]
        if name not in _CLASSES:
            raise ValueError(f"this release has no class {name!r}")
        cls = _CLASSES[name]
        state = {str(k): self.decode(v) for k, v in data["state"].items()}
        if issubclass(cls, tuple) or is_dataclass(cls):
            return cls(**state)
        if issubclass(cls, BaseEstimator):
            state = _estimator_state(cls, state)
        elif state.keys() != _ATTRIBUTES[cls]:
            raise ValueError(f"{name} has other attributes in this release")
        made = cls.__new__(cls)
        vars(made).update(state)
        check_state(made)
        return made


def _estimator_state(cls, state):
    """Return parameters and fitted attributes, with parameters that were added later.

    A parameter that the file lacks gets its default, or the value that reproduces the
    behaviour of earlier releases. A parameter that this release does not have is an
    error, and so is an attribute that would hide a method.
    """
    parameters = inspect.signature(cls).parameters
    complete = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    complete.update(_BEFORE.get(cls, {}))
    for name, value in state.items():
        fitted = name.endswith("_") or name.startswith("_")
        if name not in parameters and (not fitted or hasattr(cls, name)):
            raise ValueError(
                f"{cls.__name__} of this release has no parameter {name!r}; the file "
                "may be of a later one"
            )
        complete[name] = value
    if absent := parameters.keys() - complete.keys():
        raise ValueError(f"the file lacks {sorted(absent)} of the {cls.__name__}")
    if _NOT_STORED in parameters:
        complete[_NOT_STORED] = None
    return complete
