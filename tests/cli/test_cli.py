import gzip
import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lpcfg_sk import WTA, SelfTrainingParser, Tree, load, save
from lpcfg_sk._cli import main
from lpcfg_sk._cli._console import emit_table
from lpcfg_sk.datasets import load_toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    trees = load_toy(120)
    trees[:100].write(folder / "train.ptb")
    trees[100:].write(folder / "test.ptb")
    train, model = str(folder / "train.ptb"), str(folder / "pcfg")
    status = main(["train", train, "-o", model, "--learner", "pcfg"])
    assert status == 0
    return folder


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


def parse(monkeypatch, capsys, text, *arguments):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run(capsys, "parse", *arguments)


@pytest.mark.slow_without_jit
@pytest.mark.filterwarnings("ignore::lpcfg_sk.exceptions.ParseFailureWarning")
@pytest.mark.parametrize("name", ["raw.txt", "raw.txt.gz"])
def test_train_with_raw_sentences(folder, capsys, name):
    sentences = load_toy(160)[120:].sentences()
    opened = gzip.open if name.endswith(".gz") else open
    with opened(folder / name, "wt") as file:
        file.write("\n".join(" ".join(tokens) for tokens in sentences) + "\n\n")
    train = ("train", folder / "train.ptb", "--learner", "pcfg", "-o", folder / "raw")
    raw = ("--raw", folder / name, "--unlabeled-weight", 0.3)
    status, _, err = run(capsys, *train, *raw)
    assert status == 0, err
    parser = SelfTrainingParser(load(folder / "pcfg"), unlabeled_weight=0.3)
    parser.fit([*load_toy(100), *sentences])
    expected = parser.student_[-1].grammar_.to_frame()
    assert load(folder / "raw")[-1].grammar_.to_frame().equals(expected)
    status, _, err = run(capsys, *train, "--raw", folder / "missing")
    assert status != 0 and "missing" in err


def test_train_says_what_it_made(folder, capsys):
    status, out, err = run(
        capsys,
        "train",
        folder / "train.ptb",
        "-o",
        folder / "em",
        "-m",
        2,
        "--learner",
        "em",
    )
    assert status == 0, err
    assert "em from 100 trees" in out
    _, out, _ = run(
        capsys,
        *("train", folder / "train.ptb", "-o", folder / "again"),
        *("--learner", "pcfg", "--json"),
    )
    facts = json.loads(out)
    assert facts["trees"] == 100
    assert facts["model"] == str(folder / "again")
    assert (folder / "em").stat().st_size > 0


def test_margin_is_a_learner_like_the_others(folder, capsys, monkeypatch):
    model = folder / "margin"
    train = ("train", folder / "train.ptb", "-o", model, "--learner", "margin")
    status, out, err = run(capsys, *train)
    assert status == 0, err
    assert "margin from 100 trees, <LPCFG of" in out
    facts = json.loads(run(capsys, *train, "--json")[1])
    assert facts["learner"] == "margin"
    assert facts["words"] > 0
    sentence = " ".join(load_toy(1)[0].words())
    _, out, _ = parse(monkeypatch, capsys, f"{sentence}\n", model)
    assert Tree.from_string(out.strip()).words() == sentence.split()
    assert "@" not in out
    _, kbest, _ = parse(monkeypatch, capsys, sentence, model, "--kbest", 2)
    assert len(kbest.split("\n")[:-2]) == 2
    _, brackets, _ = parse(monkeypatch, capsys, sentence, model, "--marginals")
    assert "\nS\t0\t" in brackets
    status, out, err = run(capsys, "inspect", model)
    assert status == 0, err
    assert "nonterminal" in out
    _, _, err = run(capsys, "select", folder / "train.ptb", "--learner", "margin")
    assert "no latent states" in err


def test_parse_keeps_lines(folder, capsys, monkeypatch):
    sentence = " ".join(load_toy(1)[0].words())
    status, out, err = parse(
        monkeypatch, capsys, f"{sentence}\n\n{sentence}\n", folder / "pcfg"
    )
    assert status == 0, err
    lines = out.split("\n")
    assert lines[0].startswith("(")
    assert lines[1] == ""
    assert lines[2] == lines[0]


def test_parse_of_raw_text(folder, capsys, monkeypatch):
    pytest.importorskip("nltk")
    model = folder / "pcfg"
    text = "he worked again."
    status, raw, _ = parse(monkeypatch, capsys, text + "\n\n", model, "--tokenize")
    _, split, _ = parse(monkeypatch, capsys, "he worked again .\n\n", model)
    assert (status, raw) == (0, split)
    status, _, error = parse(monkeypatch, capsys, text, model, "--tokenize", "--tags")
    assert status == 2
    assert "not allowed with" in error


def test_parse_kbest_marginals_tags_json(folder, capsys, monkeypatch):
    tree = load_toy(1)[0]
    sentence = " ".join(tree.words())
    _, out, _ = parse(monkeypatch, capsys, sentence, folder / "pcfg", "--kbest", 3)
    scores = [float(line.split("\t")[0]) for line in out.strip().splitlines()]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    _, out, _ = parse(
        monkeypatch, capsys, sentence, folder / "pcfg", "--kbest", 2, "--json"
    )
    assert len(json.loads(out)) == 2
    _, out, _ = parse(
        monkeypatch, capsys, sentence, folder / "pcfg", "--marginals", "--json"
    )
    assert {"label", "start", "end", "marginal"} <= set(json.loads(out)[0])


def test_given_tags_are_kept(folder, capsys, monkeypatch):
    words = ["the", "dog", "sees", "a", "cat", "."]
    for tags in ("DT NN VBZ DT NN .", "CD NNS VBD DT NN ."):
        tagged = [f"{w}/{t}" for w, t in zip(words, tags.split(), strict=True)]
        text = " ".join(tagged)
        arguments = (monkeypatch, capsys, text, folder / "pcfg", "--tags")
        _, out, err = parse(*arguments, "--json")
        assert err == ""
        tree = Tree.from_string(json.loads(out)["tree"])
        assert (tree.words(), tree.tags()) == (words, tags.split())
        _, out, _ = parse(*arguments)
        assert Tree.from_string(out) == tree
    status, _, err = parse(monkeypatch, capsys, "word", folder / "pcfg", "--tags")
    assert status == 1
    assert "line 1: expected word/TAG" in err


def test_answers_of_several_lines_end_in_an_empty_one(folder, capsys, monkeypatch):
    sentence = " ".join(load_toy(1)[0].words())
    text = f"{sentence}\n\n{sentence}\n"
    for option in (["--kbest", 2], ["--marginals"]):
        _, out, _ = parse(monkeypatch, capsys, text, folder / "pcfg", *option)
        # An answer, the empty line that ends it, the empty line, an answer, its end.
        answer = out[: out.index("\n\n") + 2]
        assert out == f"{answer}\n{answer}"
        assert len(answer.splitlines()) > 2
        _, out, _ = parse(monkeypatch, capsys, text, folder / "pcfg", *option, "--json")
        answers = [json.loads(line) for line in out.splitlines()]
        assert answers[0] == answers[2]
        assert answers[1] is None


def test_brackets_among_the_words(folder, capsys, monkeypatch):
    _, out, _ = parse(monkeypatch, capsys, "the ( old ) dog\n", folder / "pcfg")
    tree = Tree.from_string(out)
    assert tree.words() == ["the", "-LRB-", "old", "-RRB-", "dog"]


def test_one_warning_for_all_batches_says_which_line(folder, capsys, monkeypatch):
    text = "the dog sees a cat .\n" * 2 + "\n" + "the dog\n" * 3
    _, out, err = parse(monkeypatch, capsys, text, folder / "pcfg", "--batch", 2)
    assert len(out.splitlines()) == 6
    assert len(err.splitlines()) == 1
    assert "3 of 5 sentences have no parse" in err
    assert "(the first is line 4)" in err


def test_sentences_too_long_get_flat_trees(folder, capsys, monkeypatch):
    words = ["the", "dog", "sees"] * 30
    text = f"the dog sees a cat .\n\n{' '.join(words)}\nthe dog sees a cat .\n"
    for option in (["--max-memory", "100K"], ["--max-length", 50]):
        arguments = (folder / "pcfg", "--batch", 9, *option)
        status, out, err = parse(monkeypatch, capsys, text, *arguments)
        assert status == 0
        first, empty, flat, last = out.splitlines()
        assert first == last != empty == ""
        tree = Tree.from_string(flat)
        assert tree.words() == words
        assert tree.tags() == ["DT", "NN", "VBZ"] * 30
        assert len(tree.children) == 90
        by_length = "1 sentences, the first in line 3, exceed --max-length" in err
        by_memory = "1 of 3 sentences do not fit max_memory" in err
        assert (by_length, by_memory) == (option[1] == 50, option[1] == "100K")
        assert "line 3" in err


def test_input_that_is_not_text(folder, capsys):
    path = folder / "latin.txt"
    path.write_bytes("caf\xe9 noir\n".encode("latin-1"))
    status, out, err = run(capsys, "parse", folder / "pcfg", path)
    assert (status, out) == (1, "\n")
    assert "line 1: sentences are read as utf-8" in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow_without_jit
def test_progress_is_for_terminals(folder, capsys, monkeypatch):
    arguments = ["select", folder / "train.ptb", "-m", 1, "--cv", 2]
    _, out, err = run(capsys, *arguments)
    assert "\r" not in err
    # capsys has replaced the stream, of which this is a method.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, again, err = run(capsys, *arguments)
    assert "] 2/2" in err
    assert err.endswith("\r\033[K")
    assert again.splitlines()[0] == out.splitlines()[0]
    sentences = folder / "sentences.txt"
    sentences.write_text("the dog sleeps .\n" * 3)
    _, _, err = run(capsys, "parse", folder / "pcfg", sentences, "--batch", 2)
    assert "sentences 2, " in err
    assert "sentences 3, " in err
    output = folder / "watched"
    train = ["train", folder / "train.ptb", "-o", output, "-m", 2]
    _, _, err = run(capsys, *train, "--learner", "spectral")
    assert "SpectralLPCFG" in err
    assert load(output)[-1].verbose == 0
    _, _, err = run(capsys, "minimize", folder / "pcfg", "-n", 2)
    assert "minimising an automaton of" in err
    assert "kept 2 states" in err


def test_evaluate_in_three_layouts(folder, capsys):
    gold = folder / "test.ptb"
    status, out, _ = run(capsys, "evaluate", gold, gold)
    assert status == 0
    assert "Bracketing FMeasure       = 100.00" in out
    trees = load_toy(120)[100:]
    n_words = sum(len(tree.words()) for tree in trees)
    n_stops = sum(tree.tags().count(".") + tree.tags().count(",") for tree in trees)
    assert n_stops > 0
    _, out, _ = run(capsys, "evaluate", gold, gold, "--summary")
    head, *rows = [line.split() for line in out.splitlines()]
    found = dict(zip(head, rows[0][1:], strict=True))
    assert rows[0][0] == "all"
    assert (found["n_valid"], found["f1"]) == ("20", "100")
    assert max(map(len, out.splitlines())) <= 80
    _, out, _ = run(capsys, "evaluate", gold, gold, "--json")
    assert json.loads(out)["all"]["words"] == n_words - n_stops
    # No label is deleted, so punctuation counts.
    _, out, _ = run(capsys, "evaluate", gold, gold, "--json", "--params", "none")
    totals = json.loads(out)["all"]
    assert totals["words"] == totals["correct_tags"] == n_words
    assert totals["f1"] == 100.0
    assert totals["matched_brackets"] == totals["gold_brackets"] > 20


def test_evaluate_counts_what_is_wrong(folder, capsys):
    gold, predicted = folder / "one.ptb", folder / "other.ptb"
    gold.write_text("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n")
    predicted.write_text("(S (NP (DT the) (NN dog)) (NP (VBZ barks)))\n")
    _, out, _ = run(capsys, "evaluate", gold, predicted, "--json")
    totals = json.loads(out)["all"]
    assert (totals["matched_brackets"], totals["gold_brackets"]) == (2, 3)
    assert totals["recall"] == pytest.approx(200 / 3)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--seed", -1),
        ("--vertical", 0),
        ("--memory-min-count", 0),
        ("--horizontal", -1),
    ],
)
def test_select_says_once_what_no_fit_takes(folder, capsys, flag, value):
    status, _, err = run(
        capsys, "select", folder / "train.ptb", "-m", "1,2", "--cv", 2, flag, value
    )
    assert status == 1
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "fits failed" not in err


@pytest.mark.slow_without_jit
def test_select_and_inspect(folder, capsys):
    status, out, err = run(
        capsys,
        "select",
        folder / "train.ptb",
        "-m",
        "1,2",
        "--cv",
        2,
        "--json",
        "--learner",
        "spectral",
    )
    assert status == 0, err
    assert {row["m"] for row in json.loads(out)} == {1, 2}
    status, out, _ = run(capsys, "inspect", folder / "pcfg")
    assert status == 0
    assert "nonterminal" in out
    _, out, _ = run(capsys, "inspect", folder / "pcfg", "--label", "NP", "--json")
    assert json.loads(out)[0]["kind"] == "rule"


def test_minimize(folder, capsys):
    status, out, err = run(
        capsys, "minimize", folder / "pcfg", "-n", 5, "-o", folder / "wta", "--json"
    )
    assert status == 0, err
    assert json.loads(out)[1]["states"] == 5
    assert json.loads(out)[1]["weights"] == 5**3
    assert WTA.load(folder / "wta").n_states == 5


@pytest.mark.slow_without_jit
def test_compile_runs_what_the_commands_run(capsys):
    status, out, err = run(capsys, "compile")
    assert status == 0, err
    assert "the kernels are compiled and stored in" in out
    assert "SpectralLPCFG" in err


@pytest.mark.slow_without_jit
def test_demo_prints_a_table(capsys):
    status, out, err = run(capsys, "demo", "--trees", 100, "--json")
    assert status == 0, err
    assert "five learners on 100 trees: about 4 seconds" in err
    rows = {row["model"]: row["f1"] for row in json.loads(out)}
    assert len(rows) >= 4
    assert rows["PCFG"] > 0
    status, out, err = run(capsys, "demo", "--trees", 100)
    assert status == 0, err
    assert "Trained on 100 trees" in out
    assert "Spectral, m=8" in out


def test_tables_with_gaps(capsys):
    table = pd.DataFrame(
        {
            "failures": pd.array([1, None], dtype="Int64"),
            "f1": [81.25, np.nan],
            "name": ["one", "two"],
        },
        index=["a", "b"],
    )
    emit_table(table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["a", "1", "81.25", "one"],
        ["b", "two"],
    ]
    emit_table(table, as_json=True)
    assert json.loads(capsys.readouterr().out)[1]["failures"] is None


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nope"], 2, "invalid choice"),
        ([], 2, "COMMAND"),
        (["train", "missing.ptb", "-o", "x"], 1, "missing.ptb"),
        (["parse", "missing"], 1, "No such file"),
        (["select", "x", "-m", "0"], 2, "whole number"),
        (["demo", "--trees", "0"], 2, "whole number"),
        (["train", "x", "-o", "no/such/folder"], 2, "no folder 'no/such'"),
        (["minimize", "x", "-o", "no/such/folder"], 2, "no folder 'no/such'"),
        (["train", "x", "-o", "."], 2, "'.' is a folder"),
        (["minimize", "x", "-o", "."], 2, "'.' is a folder"),
        (["train", "x", "-o", "y", "--jobs", "0"], 2, "'0' is no number of threads"),
        (["select", "x", "--jobs", "many"], 2, "'many' is no number of threads"),
        (["parse", "x", "--jobs", "0"], 2, "from 1 on, or -1"),
        (["parse", "x", "--kbest", "2", "--marginals"], 2, "not allowed with"),
        (["select", "x", "--learner", "pcfg"], 1, "no latent states"),
        (["evaluate", "missing", "missing"], 1, "missing"),
    ],
)
def test_errors_are_one_line(arguments, status, message, capsys):
    found, out, err = run(capsys, *arguments)
    assert found == status
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    if status == 1:
        assert len(err.splitlines()) == 1


def test_malformed_trees_are_located(tmp_path, capsys):
    bad = tmp_path / "bad.ptb"
    bad.write_text("(S (NP a) (VP b))\n(S (NP a)\n")
    status, _, err = run(capsys, "train", bad, "-o", tmp_path / "m")
    assert status == 1
    assert "bad.ptb, line 2" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["train", "select"])
def test_files_without_trees_are_named(tmp_path, capsys, command):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    more = ["-o", tmp_path / "model"] if command == "train" else []
    status, _, err = run(capsys, command, empty, *more)
    assert status == 1
    assert "empty.txt: no trees" in err


@pytest.mark.parametrize("command", ["parse", "inspect", "minimize"])
@pytest.mark.parametrize("kind", ["empty", "noise", "cut", "automaton", "learner"])
def test_files_that_are_no_model(folder, capsys, command, kind):
    path = folder / kind
    model = (folder / "pcfg").read_bytes()
    if kind == "automaton":
        WTA([1.0], [[[0.1]]], {"x": [1.0]}).save(path)
    elif kind == "learner":
        save(load(folder / "pcfg")[-1], path)
    else:
        content = {"empty": b"", "noise": bytes(range(256)), "cut": model[:400]}
        path.write_bytes(content[kind])
    status, out, err = run(capsys, command, path)
    assert (status, out) == (1, "")
    assert kind in err
    assert len(err.splitlines()) == 1
    remedy = {"automaton": "read with WTA.load", "learner": "holds a PCFG; expected"}
    assert remedy.get(kind, "") in err


@pytest.mark.slow_without_jit
def test_inspect_shows_the_states_of_a_nonterminal(folder, capsys):
    model = folder / "pivot"
    run(capsys, "train", folder / "train.ptb", "-o", model, "--learner", "pivot")
    _, out, _ = run(capsys, "inspect", model)
    assert "pivot" in out
    assert "inside:" in out
    _, out, _ = run(capsys, "inspect", model, "--json")
    assert {"words", "rules", "pivot", "entropy"} <= set(json.loads(out)[0])
    _, out, _ = run(capsys, "inspect", model, "--label", "NP", "--top", 2)
    assert out.split()[0] == "state"
    status, _, err = run(capsys, "inspect", model, "--label", "ZZ")
    assert status == 1
    assert "no nonterminal 'ZZ'" in err


def help_of(capsys, command):
    assert main([command, "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_help_says_what_is_not_obvious(capsys):
    told = help_of(capsys, "select")
    assert "with commas and no blanks between them (default: 4,8,16)" in told
    assert "(default: 3)" in told
    assert "None" not in told
    assert "False" not in told
    assert "0-based and half-open" in help_of(capsys, "parse")
    told = help_of(capsys, "minimize")
    for fact in ("n^3 weights", "Without -n all states", "WTA.load reads it"):
        assert fact in told


def test_help_imports_no_heavy_module():
    program = (
        "import sys; from lpcfg_sk._cli import main; main(['parse', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_help_and_version(capsys):
    assert main(["--help"]) == 0
    assert "demo" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert "lpcfg_sk" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["inspect", "parse"])
def test_a_closed_pipe_is_no_error(folder, command):
    environment = {**os.environ, "PYTHONWARNINGS": ""}
    program = f'"{sys.executable}" -m lpcfg_sk {command} "{folder / "pcfg"}"'
    if command == "parse":
        # More than a pipe holds, so that writing to the closed pipe cannot be missed.
        many = folder / "many.txt"
        many.write_text("the dog sleeps .\n" * 20000)
        program += f' "{many}"'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} | head -n 1"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0
    assert "Error" not in done.stderr
