"""Examples and code of the documentation.

The docs build runs every example; here they run as slow tests, and by default are only
compiled.
"""

import ast
import importlib
import re
import runpy
import textwrap
from pathlib import Path

import pytest

import lpcfg_sk

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def code_blocks(page):
    text = (ROOT / page).read_text("utf-8")
    if page.endswith(".md"):
        return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text)
    return [textwrap.dedent(block) for block in blocks]


def test_examples_are_numbered_from_one():
    numbers = [re.match(r"plot_(\d\d)_[a-z_]+$", path.stem)[1] for path in EXAMPLES]
    assert numbers == [f"{i:02}" for i in range(1, len(EXAMPLES) + 1)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_header(path):
    source = path.read_text("utf-8")
    lines = ast.get_docstring(ast.parse(source)).splitlines()
    assert re.match("[A-Z]", lines[0])
    assert lines[1] == "=" * len(lines[0])
    assert lines[2] == ""
    assert len(" ".join(lines[3:])) > 100
    assert "plt.show()" in source


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("agg")
    runpy.run_path(str(path))
    assert plt.get_fignums()
    plt.close("all")


@pytest.mark.parametrize(
    "page", ["README.md", "docs/index.rst", "docs/guide.rst", "docs/treebanks.rst"]
)
def test_code_of_pages_compiles(page):
    blocks = code_blocks(page)
    assert blocks
    for block in blocks:
        compile(block, page, "exec")


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
def test_code_of_the_guide_for_contributors_runs():
    namespace = {"__name__": "extending"}
    for block in code_blocks("docs/extending.rst"):
        exec(compile(block, "docs/extending.rst", "exec"), namespace)
    uniform = namespace["make_parser"](namespace["UniformPCFG"]())
    trees = namespace["load_toy"](250)
    assert 0.3 < uniform.fit(trees[:200]).score(trees[200:]) < 0.95


def test_the_api_page_names_everything():
    page = (ROOT / "docs" / "api.rst").read_text("utf-8").split()
    for sub in lpcfg_sk._SUBPACKAGES:
        module = importlib.import_module(f"lpcfg_sk.{sub}")
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if getattr(thing, "__module__", "").startswith("lpcfg_sk"):
                assert f"{sub}.{name}" in page
