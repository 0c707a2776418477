"""Tables and figures of the papers, in their smallest size."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import lpcfg_sk
from lpcfg_sk.datasets import _corpora, load_toy
from lpcfg_sk.treebank import write_treebank

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
replicate = importlib.import_module("replicate")
registry = importlib.import_module("papers._registry")
sys.path.remove(str(BENCHMARKS))

pytestmark = pytest.mark.slow_without_jit
IDS = sorted(registry.REPLICATIONS)
PAPERS = (BENCHMARKS.parent / "docs" / "papers.rst").read_text(encoding="utf-8")
#: Rows in the smallest size, and columns beside "paper", "ours" and "differs".
SHAPES = {
    "000-ablation": (9, "trees setting"),
    "000-figures1-6": (2, "tree"),
    "000-local-optima": (6, "learner seed"),
    "000-tagging": (2, "m"),
    "000-theorem3": (4, "grammar of"),
    "000-theorem6": (4, "grammar trees"),
    "000-theorem8": (8, "M nodes"),
    "000-time": (2, "m"),
    "000-time-by-m": (6, "M m"),
    "001-brown": (3, "of"),
    "001-table1": (7, "m learner iterations"),
    "001-table2": (10, "model m"),
    "001-table2-nyt": (10, "model m"),
    "001-theorem1": (4, "learner grammar M"),
    "001-theorem2": (6, "matrix columns"),
    "001-time": (2, "m sentences"),
    "002-theorem3": (8, "of n_words epsilon m R Lambda sigma"),
    "003-algorithm1": (155, "model iteration"),
    "003-equations17-20": (6, "rho n"),
    "003-figure1": (1, "language corpus c"),
    "003-figure2": (6, "of tree"),
    "003-figure3": (4, "variable"),
    "003-hoeffding": (5, "n"),
    "003-lemmas6-7": (9, "kappa epsilon"),
    "003-proposition1": (5, "stop"),
    "003-proposition4": (5, "n"),
    "003-table1": (3, "rule theta eta"),
    "003-table2": (4, "s K_n eps_tail"),
    "003-theorem5": (6, "kappa epsilon"),
    "003-theorems2-3": (10, "theorem epsilon"),
    "004-figure2": (7, "method n_parameters l2 perplexity"),
    "004-figure3": (7, "method n_parameters F1"),
    "004-gamma": (2, "sum"),
    "004-singular-values": (25, "i theta correlation"),
    "004-theorem2": (2, "automaton states found trees"),
    "004-theorem7": (23, "automaton size"),
}


@pytest.fixture(scope="module")
def setting():
    return registry.Setting("tiny")


@pytest.mark.parametrize("id", IDS)
def test_a_replication_has_its_table_and_its_claim_holds(id, setting, tmp_path):
    pytest.importorskip("matplotlib")
    table, holds, _ = replicate.replicate(id, setting, tmp_path)
    n_rows, columns = SHAPES[id]
    assert {"paper", "ours", "differs", *columns.split()} <= set(table.columns)
    if "method" in table:
        # A rival that is there where its package is.
        table = table[table["method"] != "CP, pqnr"]
    assert len(table) == n_rows
    assert table["ours"].notna().all()
    assert holds, registry.REPLICATIONS[id].claim
    assert (tmp_path / f"{id}.csv").exists()
    assert (tmp_path / f"{id}.png").exists()


def test_every_paper_is_replicated(capsys):
    assert replicate.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == IDS
    assert {id[:3] for id in IDS} >= {"000", "001", "003", "004"}


def test_the_documentation_names_every_id():
    assert [id for id in IDS if f"``{id}``" not in PAPERS] == []


def rows_of_papers():
    """Rows of the tables "in the paper, in the library, again by"."""
    tables = PAPERS.split("     - again by\n")[1:]
    text = "\n".join(table.partition("\n\n")[0] for table in tables)
    return re.findall(
        r"^   \* - (.*?)\n     - (.*?)\n     -(.*?)(?=\n   \* -|\Z)", text, re.S | re.M
    )


def test_every_row_of_the_papers_points_to_code_that_exists():
    rows = rows_of_papers()
    assert len(rows) == PAPERS.count("\n   * - ") - len(IDS) - 5
    unknown = []
    for paper, code, ids in rows:
        names = re.findall(r":\w+:`[^`]+`|``[^`]+``", code)
        assert names, paper
        assert "``" in ids, paper
        unknown += [name for name in names if not exists(name)]
        unknown += [id for id in re.findall(r"``(.*?)``", ids) if id not in IDS]
    assert unknown == []


def exists(name):
    """Whether a role or a literal of docs/papers.rst names something."""
    if name.startswith(":ref:"):
        file = name[:-1].removeprefix(":ref:`sphx_glr_auto_examples_")
        return (BENCHMARKS.parent / "examples" / file).exists()
    if name.startswith(":"):
        home, _, last = name[name.index("~") + 1 : -1].rpartition(".")
        return hasattr(importlib.import_module(home), last)
    literal = name.strip("`")
    if literal.endswith(".py"):
        return (BENCHMARKS.parent / "lpcfg_sk" / literal).exists()
    if call := re.fullmatch(r"(\w+)\((.*)\)", literal):
        owner, arguments = call.groups()
        names = re.findall(r"(\w+)(?:=[^,]+)?(?:, |$)", arguments)
        known = inspect.signature(find(owner)).parameters
        return bool(names) and set(names) <= set(known)
    if attribute := re.fullmatch(r"(\w+)\.(\w+)", literal):
        owner = find(attribute[1])
        return hasattr(owner, attribute[2]) or attribute[2] in owner.__doc__
    # Attributes, arguments and formulas beside the class that they belong to.
    return True


def find(name):
    homes = [lpcfg_sk, *(getattr(lpcfg_sk, sub) for sub in lpcfg_sk._SUBPACKAGES)]
    return next(getattr(home, name) for home in homes if hasattr(home, name))


def test_an_absent_corpus_is_passed_over(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LPCFG_SK_DATA", str(tmp_path))
    monkeypatch.setattr(_corpora, "data_folders", lambda: [tmp_path])
    assert replicate.main(["001-table2", "--quick", "--out", str(tmp_path)]) == 0
    assert "passed over: the corpus 'brown' is not" in capsys.readouterr().out
    options = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert replicate.main(["001-table2-nyt", *options]) == 0
    assert "passed over: the Gigaword corpus is licensed" in capsys.readouterr().out


def test_an_unknown_id_is_an_error(capsys):
    with pytest.raises(SystemExit):
        replicate.main(["005-table1"])
    assert "no such id: 005-table1" in capsys.readouterr().err


CROSSING = """#BOS 9
Hunde\tNN\t--\t--\t500
bellen\tVV\t--\t--\t0
laut\tADV\t--\t--\t500
#500\tNP\t--\t--\t0
#EOS 9
"""


@pytest.mark.parametrize("format", ["ptb", "export"])
def test_own_trees_take_the_place_of_the_sample(format, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "trees"
    write_treebank(load_toy(200), path, format=format)
    if format == "export":
        with open(path, "a", encoding="utf-8") as file:
            file.write(CROSSING)
    options = ["--treebank", str(path), str(path), "--format", format]
    ids = ["003-figure1", "004-gamma", "004-singular-values", "004-theorem7"]
    out = ["--out", str(tmp_path), "--quick"]
    assert replicate.main([*ids, *options, *out]) == 0
    shown = capsys.readouterr().out
    assert shown.count(str(path)) >= len(ids) - 1
    assert shown.count("holds:") == len(ids)
    assert ("TreebankWarning" in shown) == (format == "export")


def test_what_did_not_converge_is_told(setting, monkeypatch):
    _, _, warned = replicate.replicate("001-table2", setting)
    assert not any("did not converge in 500" in text for text in warned)
    models = importlib.import_module("papers.pivot")
    few = {name: {"max_iter": 1} for name in ("EM", "pivot+EM")}
    monkeypatch.setattr(models, "MODELS", few)
    _, _, warned = replicate.replicate("001-table2", setting)
    assert sum(n for text, n in warned.items() if "did not converge in 1" in text) == 2
