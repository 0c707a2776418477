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
from lpcfg_sk import SVTAMinimizer, make_parser, save, write_treebank
from lpcfg_sk.datasets import load_toy

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


def example(number):
    return next(path for path in EXAMPLES if f"_{number}_" in path.stem).read_text(
        "utf-8"
    )


def test_the_spectral_example_measures_its_error_on_fresh_trees():
    trees = dict(re.findall(r"^(\w+) = (make_treebank\(.*\))$", example("05"), re.M))
    assert "test" in trees
    seeds = [re.search(r"random_state=(\d+)", call)[1] for call in trees.values()]
    assert len(set(seeds)) == len(seeds) == 2


def test_the_tagging_example_does_not_call_its_chains_an_ordinary_hmm():
    sentences = [
        [("a", "A"), ("b", "B")],
        [("c", "C"), ("b", "B"), ("a", "A")],
    ]
    chains = lpcfg_sk.spectral.tagged_sequences_to_treebank(sentences)
    grammar = lpcfg_sk.PCFG().fit(chains).grammar_
    # Whether B is the last tag depends on the tag before it.
    assert grammar.binary["A>", "A", "B"] == grammar.binary["C>", "C", "B>"] == 1
    text = example("13")
    assert "the model is the ordinary hidden Markov model" not in text
    assert '"HMM"' not in text


def test_citations_name_the_right_theorems():
    assert "left out (theorem 7)" in example("08")
    assert "theorem 6" not in example("08")
    bounds = lpcfg_sk.bounds
    assert "(lemma 3)" in bounds.log_covering_number.__doc__
    assert "roposition 4" not in bounds.log_covering_number.__doc__
    assert "roposition 4" in bounds.asymptotic_risk_gap.__doc__


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


PAGES = [
    "README.md",
    "docs/index.rst",
    "docs/guide.rst",
    "docs/treebanks.rst",
    "docs/storage.rst",
    "docs/command_line.rst",
]
#: Blocks that name these need a download or a cluster, and do not run here.
ELSEWHERE = re.compile("nltk|dask|load_(penn_sample|brown|cess|floresta|sinica)")


@pytest.mark.parametrize("page", PAGES)
def test_code_of_pages_compiles(page):
    blocks = code_blocks(page)
    assert blocks
    for block in blocks:
        compile(block, page, "exec")


@pytest.fixture
def folder_of_a_user(tmp_path, monkeypatch):
    """Work where the pages expect a treebank and what the command line wrote."""
    trees = load_toy(120)
    for name, part in (("train", trees[:100]), ("test", trees[100:])):
        (tmp_path / "treebank" / name).mkdir(parents=True)
        write_treebank(part[:10], tmp_path / "treebank" / name / "1.mrg")
        write_treebank(part[10:], tmp_path / "treebank" / name / "2.mrg")
    parser = make_parser().fit(trees)
    save(parser, tmp_path / "english.lpcfg")
    SVTAMinimizer(parser[-1], n_states=5).fit().wta_.save(tmp_path / "small.wta")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
@pytest.mark.parametrize("page", PAGES)
def test_code_of_pages_runs(page, folder_of_a_user):
    namespace = {"__name__": "page"}
    blocks = [block for block in code_blocks(page) if not ELSEWHERE.search(block)]
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
def test_code_of_the_guide_for_contributors_runs():
    namespace = {"__name__": "extending"}
    for block in code_blocks("docs/extending.rst"):
        exec(compile(block, "docs/extending.rst", "exec"), namespace)
    uniform = namespace["make_parser"](namespace["UniformPCFG"]())
    trees = namespace["load_toy"](250)
    assert 0.3 < uniform.fit(trees[:200]).score(trees[200:]) < 0.95


def test_the_walks_through_the_code_lead_through_files_that_exist():
    page = (ROOT / "docs" / "extending.rst").read_text("utf-8")
    page = page.split("Three walks")[1].split("A feature template")[0]
    walks = [
        re.split(r"^#\. ", walk, flags=re.M)[1:] for walk in page.split(".fit``,")[1:]
    ]
    assert len(walks) == 3
    for walk in walks:
        assert len(walk) <= 4
        for stop in walk:
            path, *names = re.findall(r"``([\w./]+)``", stop)
            source = (ROOT / "lpcfg_sk" / path).read_text("utf-8")
            assert all(name in source for name in names), path


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem
)
def test_benchmarks_find_what_they_import(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)
    runpy.run_path(str(path), run_name="imported")


def test_the_api_page_names_everything():
    page = (ROOT / "docs" / "api.rst").read_text("utf-8").split()
    for sub in lpcfg_sk._SUBPACKAGES:
        module = importlib.import_module(f"lpcfg_sk.{sub}")
        for name in getattr(module, "__all__", []):
            assert f"{sub}.{name}" in page
    for name, home in lpcfg_sk._HOME.items():
        # Private modules have names of the package alone.
        assert (name if home.startswith("_") else f"{home}.{name}") in page
