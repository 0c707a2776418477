"""What the source must not do."""

import ast
import sys
from pathlib import Path

import pytest

import lpcfg_sk

PACKAGE = Path(lpcfg_sk.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: The common checks pickle estimators, in the process that made them.
_MAY_PICKLE = {PACKAGE / "testing.py"}

#: Temporary files, which the same process wrote to a private folder.
_MAY_READ_BACK = {PACKAGE / "_parallel.py"}

_FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
_FORBIDDEN_MODULES = {
    *("pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"),
    *("subprocess", "socket", "urllib", "http", "ftplib", "ctypes", "pty"),
}
_FORBIDDEN_ATTRIBUTES = {
    *(("os", name) for name in ("system", "popen", "execv", "execve", "spawnv")),
    *(("joblib", "load"), ("np", "fromregex"), ("pd", "read_pickle"), ("pd", "eval")),
}


def _offences(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0]]
        else:
            names = []
        yield from (f"import {n}" for n in names if n in _FORBIDDEN_MODULES)
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in _FORBIDDEN_CALLS:
                yield name
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (
                owner,
                name,
            ) in _FORBIDDEN_ATTRIBUTES:
                yield f"{owner}.{name}"
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=False)):
                pass
            case ast.keyword(arg="allow_pickle" | "shell" as name):
                yield name


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_code_from_data_no_processes_no_network(path):
    found = set(_offences(ast.parse(path.read_text(encoding="utf-8"))))
    if path in _MAY_PICKLE:
        found -= {"import pickle"}
    if path in _MAY_READ_BACK:
        found -= {"joblib.load"}
    assert not found


def test_the_test_finds_what_it_looks_for():
    text = "import pickle\nfrom os import path\neval('1')\nos.system('x')\n"
    text += "np.load(f, allow_pickle=True)\npd.read_pickle(f)\n"
    assert set(_offences(ast.parse(text))) == {
        *("import pickle", "eval", "os.system", "allow_pickle", "pd.read_pickle"),
    }


def test_loading_a_model_imports_nothing_that_a_file_names(tmp_path):
    from lpcfg_sk._files import save_arrays
    from lpcfg_sk.persistence import load

    for name in ("this", "antigravity", "lpcfg_sk.__main__:main", "lpcfg_sk.bounds"):
        before = set(sys.modules)
        data = {"$": "object", "of": name, "state": {}}
        save_arrays(tmp_path / "model", "estimator", 1, data, {})
        with pytest.raises(ValueError, match="no class"):
            load(tmp_path / "model")
        assert name.partition(":")[0] not in set(sys.modules) - before


def test_a_model_is_written_where_the_user_says(tmp_path, monkeypatch):
    from lpcfg_sk import TreeBinarizer, save

    monkeypatch.chdir(tmp_path)
    for path in ("plain", "with space", "-o", "~", "$HOME", "a.npz", "ünïcode"):
        save(TreeBinarizer(), path)
        assert (tmp_path / path).is_file()
    with pytest.raises(FileNotFoundError):
        save(TreeBinarizer(), tmp_path / "missing" / "model")
    with pytest.raises(OSError):
        save(TreeBinarizer(), tmp_path)
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
