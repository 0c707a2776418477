"""Estimators as plain data and arrays, and back.

What is written are parameters and fitted attributes, never code: reading a file can
only make objects of this library's own classes, of scikit-learn's ``Pipeline``, and of
plain containers.
"""

import importlib
import inspect
import math

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.pipeline import Pipeline

from lpcfg_sk.grammar import CFG, LPCFG, GrammarArrays, Rule
from lpcfg_sk.treebank import SymbolTable

__all__ = ["decode", "encode"]

_MARK = "$"


class _Values:
    """Classes whose objects are made by their constructors, which check them."""

    @staticmethod
    def of_lpcfg(grammar):
        return {
            "nonterminals": list(grammar.nonterminals),
            "words": list(grammar.words),
            "arrays": grammar.arrays._asdict(),
            "unknown_word": grammar.unknown_word,
        }

    @staticmethod
    def to_lpcfg(state):
        return LPCFG.from_arrays(
            state["nonterminals"],
            state["words"],
            GrammarArrays(**state["arrays"]),
            unknown_word=state["unknown_word"],
        )

    @staticmethod
    def of_cfg(grammar):
        return {
            "rules": [[r.lhs, list(r.rhs), list(r.terminal)] for r in grammar.rules],
            "start": grammar.start,
            "unary_cycles": grammar.unary_cycles,
            "implicit_start": grammar.implicit_start,
        }

    @staticmethod
    def to_cfg(state):
        rules = [Rule(lhs, tuple(rhs), tuple(t)) for lhs, rhs, t in state["rules"]]
        return CFG(
            rules,
            state["start"],
            unary_cycles=state["unary_cycles"],
            implicit_start=state["implicit_start"],
        )

    @staticmethod
    def of_table(table):
        return {"strings": list(table.strings), "backoff": table.backoff}

    @staticmethod
    def to_table(state):
        return SymbolTable(state["strings"], state["backoff"])


_VALUES = {
    "LPCFG": (LPCFG, _Values.of_lpcfg, _Values.to_lpcfg),
    "CFG": (CFG, _Values.of_cfg, _Values.to_cfg),
    "SymbolTable": (SymbolTable, _Values.of_table, _Values.to_table),
}


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
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and not isinstance(value, np.integer):
        return value
    if isinstance(value, float) and not isinstance(value, np.floating):
        return value if math.isfinite(value) else {_MARK: "float", "text": str(value)}
    if isinstance(value, np.generic):
        return {
            _MARK: "scalar",
            "value": encode(np.asarray(value).reshape(1), arrays, where),
        }
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, where)
    if scipy.sparse.issparse(value):
        csr = value.tocsr()
        parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
        return {
            _MARK: "sparse",
            "shape": list(csr.shape),
            **{k: encode(v, arrays, where) for k, v in parts.items()},
        }
    if isinstance(value, pd.Series | pd.DataFrame):
        return _encode_pandas(value, arrays, where)
    for name, (cls, of, _) in _VALUES.items():
        if type(value) is cls:
            return {
                _MARK: "value",
                "of": name,
                "state": encode(of(value), arrays, where),
            }
    if isinstance(value, list):
        return [encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {
            _MARK: "dict",
            "items": [
                [encode(k, arrays, where), encode(v, arrays, f"{where}[{k!r}]")]
                for k, v in value.items()
            ],
        }
    if isinstance(value, set | frozenset):
        items = [encode(v, arrays, where) for v in sorted(value)]
        return {_MARK: type(value).__name__, "items": items}
    if type(value) is tuple:
        return {_MARK: "tuple", "items": encode(list(value), arrays, where)}
    if isinstance(value, Pipeline):
        steps = [[name, encode(s, arrays, name)] for name, s in value.steps]
        return {_MARK: "pipeline", "steps": steps}
    return _encode_object(value, arrays, where)


def _encode_array(value, arrays, where):
    if value.dtype.kind in "biufc":
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {_MARK: "array", "name": name}
    if value.dtype.kind in "OUT":
        flat = [encode(v, arrays, where) for v in value.ravel().tolist()]
        return {_MARK: "objects", "shape": list(value.shape), "items": flat}
    raise TypeError(
        f"{where} is an array of dtype {value.dtype}, which cannot be saved"
    )


def _encode_pandas(value, arrays, where):
    index = encode(np.asarray(value.index), arrays, where)
    if isinstance(value, pd.Series):
        data = encode(value.to_numpy(), arrays, where)
        return {_MARK: "series", "index": index, "values": data, "name": value.name}
    columns = [
        [name, encode(value[name].to_numpy(), arrays, where)] for name in value.columns
    ]
    return {_MARK: "frame", "index": index, "columns": columns}


def _encode_object(value, arrays, where):
    cls = type(value)
    if not _is_ours(cls):
        raise TypeError(
            f"{where} is a {cls.__module__}.{cls.__qualname__}, which cannot be saved "
            "without pickle; use a named option, a number or a dict instead, or keep "
            "the estimator with joblib.dump"
        )
    if isinstance(value, tuple):
        state = dict(zip(value._fields, value, strict=True))
    else:
        state = dict(vars(value))
    return {
        _MARK: "object",
        "of": f"{cls.__module__}:{cls.__qualname__}",
        "state": {k: encode(v, arrays, f"{where}.{k}") for k, v in state.items()},
    }


def _is_ours(cls):
    return (
        inspect.isclass(cls)
        and cls.__module__.split(".")[0] == "lpcfg_sk"
        and "." not in cls.__qualname__
    )


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
        return _decode(data, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"the file does not describe an estimator: {error}") from error


def _decode(data, arrays):
    if isinstance(data, list):
        return [_decode(v, arrays) for v in data]
    if not isinstance(data, dict):
        return data
    kind = data[_MARK]
    if kind == "float":
        return float(data["text"])
    if kind == "scalar":
        return _decode(data["value"], arrays)[0]
    if kind == "array":
        return arrays[data["name"]]
    if kind == "objects":
        out = np.empty(len(data["items"]), dtype=object)
        out[:] = [_decode(v, arrays) for v in data["items"]]
        return out.reshape(data["shape"])
    if kind == "sparse":
        parts = tuple(_decode(data[k], arrays) for k in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_matrix(parts, shape=tuple(data["shape"]))
        matrix.check_format()
        return matrix
    if kind in ("series", "frame"):
        return _decode_pandas(kind, data, arrays)
    if kind == "dict":
        return {_decode(k, arrays): _decode(v, arrays) for k, v in data["items"]}
    if kind in ("tuple", "set", "frozenset"):
        make = {"tuple": tuple, "set": set, "frozenset": frozenset}[kind]
        return make(_decode(v, arrays) for v in data["items"])
    if kind == "value":
        return _VALUES[data["of"]][2](_decode(data["state"], arrays))
    if kind == "pipeline":
        return Pipeline([(str(n), _decode(s, arrays)) for n, s in data["steps"]])
    if kind == "object":
        return _decode_object(data, arrays)
    raise ValueError(f"unknown kind of data {kind!r}")


def _decode_pandas(kind, data, arrays):
    index = _decode(data["index"], arrays)
    if kind == "series":
        return pd.Series(
            _decode(data["values"], arrays), index=index, name=data["name"]
        )
    columns = {str(name): _decode(v, arrays) for name, v in data["columns"]}
    return pd.DataFrame(columns, index=index)


def _decode_object(data, arrays):
    module, _, name = data["of"].partition(":")
    if module.split(".")[0] != "lpcfg_sk" or not name.isidentifier():
        raise ValueError(f"{data['of']!r} is not a class of this library")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"this release has no class {data['of']!r}") from None
    if not _is_ours(cls) or cls.__module__ != module:
        raise ValueError(f"{data['of']!r} is not a class of this library")
    state = {str(k): _decode(v, arrays) for k, v in data["state"].items()}
    if issubclass(cls, tuple):
        return cls(**state)
    made = cls.__new__(cls)
    vars(made).update(state)
    return made
