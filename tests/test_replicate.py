"""Tables and figures of the papers, in their smallest size."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
replicate = importlib.import_module("replicate")
registry = importlib.import_module("papers._registry")
sys.path.remove(str(BENCHMARKS))

pytestmark = pytest.mark.slow_without_jit
IDS = sorted(registry.REPLICATIONS)


@pytest.fixture(scope="module")
def setting():
    return registry.Setting("tiny")


@pytest.mark.parametrize("id", IDS)
def test_a_replication_has_its_table_and_its_claim_holds(id, setting, tmp_path):
    pytest.importorskip("matplotlib")
    table, holds, _ = replicate.replicate(id, setting, tmp_path)
    assert {"paper", "ours", "differs"} <= set(table.columns)
    assert len(table)
    assert table["ours"].notna().all()
    assert holds, registry.REPLICATIONS[id].claim
    drawn = registry.REPLICATIONS[id].draw is not None
    assert (tmp_path / f"{id}.csv").exists()
    assert (tmp_path / f"{id}.png").exists() == drawn


def test_every_paper_is_replicated(capsys):
    assert replicate.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == IDS
    assert {id[:3] for id in IDS} >= {"000", "001", "003", "004"}


def test_the_documentation_names_every_id():
    text = (BENCHMARKS.parent / "docs" / "papers.rst").read_text(encoding="utf-8")
    assert [id for id in IDS if f"``{id}``" not in text] == []


def test_an_absent_corpus_is_passed_over(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LPCFG_SK_DATA", str(tmp_path))
    assert replicate.main(["001-table2", "--quick", "--out", str(tmp_path)]) == 0
    assert "passed over: the corpus 'brown' is not" in capsys.readouterr().out
    options = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert replicate.main(["001-table2-nyt", *options]) == 0
    assert "passed over: the Gigaword corpus is licensed" in capsys.readouterr().out


def test_an_unknown_id_is_an_error(capsys):
    with pytest.raises(SystemExit):
        replicate.main(["005-table1"])
    assert "no such id: 005-table1" in capsys.readouterr().err


def test_own_trees_take_the_place_of_the_sample(capsys, tmp_path):
    path = tmp_path / "trees.mrg"
    trees = "(S (N dogs) (V bark))\n(S (N cats) (VP (V say) (S (N dogs) (V sleep))))\n"
    path.write_text(trees * 5)
    options = ["--treebank", str(path), str(path), "--out", str(tmp_path), "--quick"]
    assert replicate.main(["004-gamma", *options]) == 0
    assert str(path) in capsys.readouterr().out


def test_what_did_not_converge_is_told(setting, monkeypatch):
    _, _, warned = replicate.replicate("001-table2", setting)
    assert not any("did not converge in 500" in text for text in warned)
    models = importlib.import_module("papers.pivot")
    few = {name: {"max_iter": 1} for name in ("pivot", "pivot+EM")}
    monkeypatch.setattr(models, "MODELS", few)
    _, _, warned = replicate.replicate("001-table2", setting)
    assert sum(n for text, n in warned.items() if "did not converge in 1" in text) == 2
