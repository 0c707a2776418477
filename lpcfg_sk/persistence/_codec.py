"""Estimators as plain data and arrays, and back.

What is written are parameters and fitted attributes, never code. Reading a file can
only make objects of the classes named here: estimators and models of this library,
scikit-learn's ``Pipeline``, and plain containers.
"""

import importlib
import inspect
import math

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch

import lpcfg_sk
from lpcfg_sk.persistence._consistency import check_estimator
from lpcfg_sk.persistence._values import of_value, to_value

__all__ = ["decode", "encode"]

_MARK = "$"

#: Objects inside fitted estimators, by their name in files: module and attributes.
_PARTS = {
    "Productions": (
        "lpcfg_sk.features._productions",
        ("labels", "words", "rule_keys", "lexical_keys"),
    ),
    "Projection": ("lpcfg_sk.spectral._decomposition", None),
    "RuleInventory": ("lpcfg_sk.lpcfg._rule_counts", None),
    "_Level": (
        "lpcfg_sk.language_model._kneser_ney",
        (
            "history_keys",
            "keys",
            "outcome",
            "discounts",
            "proba",
            "backoff",
            "offsets",
        ),
    ),
}

# A cache folder is of no use on another machine, and joblib's caches are pickles: a
# file must not be able to say where they are.
_NOT_STORED = "memory"


def encode(value, arrays, where="estimator"):
    """Turn a value into JSON data, putting its arrays aside.

    Parameters
    ----------
    value : object
        An estimator, or something found in one.
    arrays : dict of str to ndarray
        Arrays are added here under new names.
    where : str, default="estimator"
        Path to the value, for messages.

    Returns
    -------
    data : JSON data

    Raises
    ------
    TypeError
        If the value holds something that only pickle could store, such as a function.
    """
    return _Encoder(arrays).encode(value, where)


def decode(data, arrays):
    """Make what `encode` took apart.

    Parameters
    ----------
    data : JSON data
        Result of `encode`.
    arrays : dict of str to ndarray
        The arrays that were put aside.

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
    """State of one `encode`: arrays put aside, and what was met before."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.met = {}

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
        """Objects are written once, however often they are met."""
        if id(value) in self.met:
            return {_MARK: "same", "number": self.met[id(value)][0]}
        data = self._new_object(value, where)
        # Keeping the object keeps its id from being given to another one.
        number = len(self.met)
        self.met[id(value)] = number, value
        return {**data, "number": number}

    def _new_object(self, value, where):
        stored = of_value(value)
        if stored is not None:
            name, state = stored
            return {_MARK: "value", "of": name, "state": self.encode(state, where)}
        if type(value) is Pipeline:
            steps = [[name, self.encode(s, name)] for name, s in value.steps]
            return {_MARK: "pipeline", "steps": steps, "verbose": bool(value.verbose)}
        cls = type(value)
        name = cls.__qualname__
        if _class_of(name) is not cls:
            raise TypeError(
                f"{where} is a {cls.__module__}.{name}, which cannot be saved "
                "without pickle; use a named option, a number or a dict instead, or "
                "keep the estimator with joblib.dump"
            )
        if isinstance(value, tuple):
            state = value._asdict()
        else:
            state = {k: v for k, v in vars(value).items() if k != _NOT_STORED}
        return {
            _MARK: "object",
            "of": name,
            # Sorted: equal models make equal files.
            "state": {k: self.encode(state[k], f"{where}.{k}") for k in sorted(state)},
        }


class _Decoder:
    """State of one `decode`: the arrays, and the objects made so far."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.made = {}
        self._kinds = {
            "float": lambda data: float(data["text"]),
            "scalar": lambda data: self.decode(data["value"])[0],
            "array": lambda data: self.arrays[data["name"]],
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
            "value": lambda data: to_value(data["of"], self.decode(data["state"])),
            "pipeline": self._pipeline,
            "object": self._object,
        }

    def decode(self, data):
        if isinstance(data, list):
            return [self.decode(v) for v in data]
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
        matrix = scipy.sparse.csr_matrix(parts, shape=tuple(data["shape"]))
        matrix.check_format()
        return matrix

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
        return Pipeline(steps, verbose=bool(data["verbose"]))

    def _object(self, data):
        name = data["of"]
        cls = _class_of(name)
        if cls is None:
            raise ValueError(f"this release has no class {name!r}")
        state = {str(k): self.decode(v) for k, v in data["state"].items()}
        if issubclass(cls, tuple):
            return cls(**state)
        if issubclass(cls, BaseEstimator):
            state = _estimator_state(cls, state)
        elif state.keys() != set(_PARTS[name][1]):
            raise ValueError(f"{name} has other attributes in this release")
        made = cls.__new__(cls)
        vars(made).update(state)
        check_estimator(made)
        return made


def _class_of(name):
    """Class of a name in a file, or None; no other class can be made."""
    if name in _PARTS:
        return getattr(importlib.import_module(_PARTS[name][0]), name)
    found = getattr(lpcfg_sk, name) if name in lpcfg_sk._HOME else None
    if inspect.isclass(found) and issubclass(found, BaseEstimator):
        return found
    return None


def _estimator_state(cls, state):
    """Parameters and fitted attributes, completed by the parameters of later years.

    A parameter that the file does not know gets its default; one that this release
    does not know is an error, and so is anything that would hide a method.
    """
    parameters = {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
    }
    complete = {
        name: default
        for name, default in parameters.items()
        if default is not inspect.Parameter.empty
    }
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
