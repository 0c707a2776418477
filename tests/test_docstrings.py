"""Every public name is documented in numpydoc's format, with an example that runs.

The examples themselves run as doctests of the package.
"""

import importlib
import inspect

import pytest

import lpcfg_sk

validate = pytest.importorskip("numpydoc.validate").validate
numpydoc = pytest.importorskip("numpydoc.docscrape")

#: Codes of numpydoc.validate. Left out: SA01 (See Also), ES01 (a second paragraph),
#: RT02 and RT03 (results may have names, and a type may say it all), SS05 (takes
#: "Numbers of" for a verb), EX01 (demanded below of names, not of methods), YD01.
CODES = {
    "GL01",
    "GL02",
    "GL03",
    "GL05",
    "GL06",
    "GL07",
    "GL08",
    "GL09",
    "GL10",
    "SS01",
    "SS02",
    "SS03",
    "SS04",
    "SS06",
    "PR01",
    "PR02",
    "PR03",
    "PR04",
    "PR05",
    "PR06",
    "PR07",
    "PR08",
    "PR09",
    "PR10",
    "RT01",
    "RT04",
    "RT05",
    "SA02",
    "SA03",
    "SA04",
}


def public_names():
    homes = {"lpcfg_sk": [n for n in lpcfg_sk.__all__ if n[0] != "_"]}
    for sub in lpcfg_sk._SUBPACKAGES:
        module = importlib.import_module(f"lpcfg_sk.{sub}")
        homes[module.__name__] = getattr(module, "__all__", [])
    seen = {}
    for home, names in homes.items():
        for name in names:
            thing = getattr(importlib.import_module(home), name)
            documented = inspect.isclass(thing) or inspect.isfunction(thing)
            if documented and thing.__module__.startswith("lpcfg_sk"):
                seen.setdefault(thing, f"{home}.{name}")
    return sorted(seen.values())


def own_methods(name):
    cls = find(name)
    if not inspect.isclass(cls):
        return []
    return [
        f"{name}.{attribute}"
        for attribute, value in inspect.getmembers(cls, callable)
        if not attribute.startswith("_")
        and (getattr(value, "__module__", None) or "").startswith("lpcfg_sk")
    ]


def find(name):
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


NAMES = public_names()
METHODS = [method for name in NAMES for method in own_methods(name)]


def is_record(thing):
    """Whether fields take the place of parameters: they are attributes."""
    return inspect.isclass(thing) and (
        hasattr(thing, "_fields") or hasattr(thing, "__dataclass_fields__")
    )


def test_there_is_something_to_check():
    assert len(NAMES) > 80
    assert "lpcfg_sk.SpectralLPCFG" in NAMES
    assert "lpcfg_sk.SpectralLPCFG.fit" in METHODS


@pytest.mark.parametrize("name", NAMES + METHODS)
def test_format(name):
    found = validate(name)["errors"]
    codes = CODES - {"PR01"} if name in NAMES and is_record(find(name)) else CODES
    assert [f"{code}: {text}" for code, text in found if code in codes] == []


@pytest.mark.parametrize("name", NAMES)
def test_example(name):
    examples = numpydoc.get_doc_object(find(name))["Examples"]
    assert any(line.startswith(">>> ") for line in examples)


@pytest.mark.parametrize("name", [n for n in NAMES if is_record(find(n))])
def test_fields_of_records(name):
    record = find(name)
    fields = getattr(record, "_fields", None) or tuple(record.__dataclass_fields__)
    doc = numpydoc.get_doc_object(record)
    documented = doc["Attributes"] + doc["Parameters"]
    names = [name for entry in documented for name in entry.name.split(", ")]
    assert set(fields) <= set(names)


def test_a_module_of_the_package_has_a_docstring():
    for sub in lpcfg_sk._SUBPACKAGES:
        assert importlib.import_module(f"lpcfg_sk.{sub}").__doc__
