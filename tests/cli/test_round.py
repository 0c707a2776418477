"""A whole round on the command line: every input, one bad line, interruptions."""

import gzip
import io
import json
import os
import subprocess
import sys

import pytest

from lpcfg_sk import EMLPCFG, Tree, load, make_parser, read_treebank, save
from lpcfg_sk._cli import _models, main
from lpcfg_sk._interrupts import interruptible
from lpcfg_sk._parallel import map_chunks
from lpcfg_sk.datasets import load_toy
from tests.cli.test_cli import parse, run

TREES = load_toy(60)
SENTENCE = "the dog sees a cat ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("round")
    TREES.write(folder / "all.ptb")
    (folder / "parts").mkdir()
    TREES[:30].write(folder / "parts" / "1.mrg")
    TREES[30:].write(folder / "parts" / "2.mrg.gz")
    lines = [_pretty(tree) for tree in TREES]
    (folder / "pretty.mrg").write_text("\n".join(lines))
    model = str(folder / "pcfg")
    assert main(["train", str(folder / "parts"), "-o", model, "--learner", "pcfg"]) == 0
    return folder


def _pretty(tree):
    """A tree over several lines, with the brackets of the Penn Treebank around it."""
    text = str(tree)
    return f"( {text.replace(' (', chr(10) + '   (')} )"


def sources(folder):
    return {
        "file": folder / "all.ptb",
        "folder": folder / "parts",
        "pattern": folder / "parts" / "*",
        "lines": folder / "pretty.mrg",
        "stdin": "-",
    }


@pytest.mark.parametrize("kind", ["file", "folder", "pattern", "lines", "stdin"])
def test_every_command_reads_every_input(folder, kind, capsys, monkeypatch, tmp_path):
    source, text = sources(folder)[kind], (folder / "all.ptb").read_text()

    def command(*arguments):
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        status, out, err = run(capsys, *arguments)
        assert status == 0, err
        return out

    made = command(
        *("train", source, "-o", tmp_path / "m", "--learner", "pcfg", "--json")
    )
    assert json.loads(made)["trees"] == 60
    report = command("evaluate", source, folder / "all.ptb", "--json")
    assert json.loads(report)["all"]["f1"] == 100
    assert json.loads(report)["all"]["n_valid"] == 60
    parsed = command("parse", folder / "pcfg", source, "--max-length", 6)
    words = [tree.words() for tree in TREES]
    assert [Tree.from_string(line).words() for line in parsed.splitlines()] == words
    tokens = command("convert", source, "--to", "tokens")
    assert [line.split() for line in tokens.splitlines()] == words


def test_select_reads_folders(folder, capsys):
    arguments = ("-m", 1, "--cv", 2, "--learner", "em", "--json")
    status, out, err = run(capsys, "select", folder / "parts", *arguments)
    assert status == 0, err
    assert json.loads(out)[0]["m"] == 1


def test_evaluate_takes_one_side_from_stdin(capsys):
    status, _, err = run(capsys, "evaluate", "-", "-")
    assert status == 1
    assert "only one" in err


def test_convert(folder, capsys, tmp_path):
    for form in ("ptb", "export"):
        path = tmp_path / f"trees.{form}.gz"
        run(capsys, "convert", folder / "pretty.mrg", "--to", form, "-o", path)
        assert path.read_bytes()[:2] == b"\x1f\x8b"
        back = read_treebank(path, format=form)
        assert [tree.words() for tree in back] == [tree.words() for tree in TREES]
        again = run(capsys, "convert", path, "--format", form)[1].splitlines()
        assert len(again) == 60
    (tmp_path / "one").write_text(
        "(S (NP-SBJ (D the) (N dog)) (-NONE- *) (VP (V ran)))"
    )
    out = run(capsys, "convert", tmp_path / "one", "--to", "tagged")[1]
    assert out == "the/D dog/N ran/V\n"
    assert run(capsys, "convert", tmp_path / "one")[1].startswith("(S (NP (D the)")
    kept = ("--keep-traces", "--keep-functions")
    out = run(capsys, "convert", tmp_path / "one", *kept)[1]
    assert "(NP-SBJ" in out
    assert "(-NONE- *)" in out
    path = tmp_path / "tokens"
    run(capsys, "convert", tmp_path / "one", "--to", "tokens", "-o", path)
    assert path.read_text() == "the dog ran\n"


def test_trees_to_parse_are_announced(folder, capsys, monkeypatch):
    text = "\n".join(f"( {tree} )" for tree in TREES[:3])
    status, out, err = parse(monkeypatch, capsys, text, folder / "pcfg", "--batch", 2)
    assert status == 0
    assert "parsing the sentences of 3 trees" in err
    assert len(out.splitlines()) == 3
    _, tagged, _ = parse(monkeypatch, capsys, text, folder / "pcfg", "--tags")
    for line, tree in zip(tagged.splitlines(), TREES[:3], strict=True):
        assert Tree.from_string(line).tags() == tree.tags()
    # A sentence may begin with a bracket.
    _, out, err = parse(monkeypatch, capsys, f"( {SENTENCE} )\n", folder / "pcfg")
    assert "holds trees" not in err
    assert Tree.from_string(out).words()[0] == "-LRB-"


def test_one_bad_line_does_not_lose_the_others(folder, capsys, tmp_path):
    tagged = "the/DT dog/NN sees/VBZ a/DT cat/NN ./."
    path = tmp_path / "sentences"
    lines = [tagged.encode(), b"word", b"caf\xe9/N", b"", tagged.encode()]
    path.write_bytes(b"\n".join(lines))
    status, out, err = run(capsys, "parse", folder / "pcfg", path, "--tags")
    assert status == 1
    first, *empty, last = out.split("\n")[:-1]
    assert first == last
    assert empty == ["", "", ""]
    assert err.count("\n") == 1
    assert "2 lines could not be read" in err
    assert "line 2: expected word/TAG, got 'word'" in err
    _, out, _ = run(capsys, "parse", folder / "pcfg", path, "--tags", "--json")
    assert [json.loads(line) is None for line in out.splitlines()] == [
        *(False, True, True, True, False)
    ]


def test_scores_are_log_probabilities(folder, capsys, monkeypatch):
    arguments = (monkeypatch, capsys, f"{SENTENCE}\n\n", folder / "pcfg", "--scores")
    score, tree = parse(*arguments)[1].splitlines()[0].split("\t")
    parser = load(folder / "pcfg")
    expected = parser[-1].score_samples(parser[:-1].transform([tree]))[0]
    assert float(score) == pytest.approx(expected, abs=1e-6)
    answer, empty = parse(*arguments, "--json")[1].splitlines()
    assert json.loads(answer)["log_prob"] == pytest.approx(expected)
    assert empty == "null"
    # A flat tree has no derivation.
    out = parse(*arguments, "--json", "--max-length", 2)[1]
    assert json.loads(out.splitlines()[0])["log_prob"] is None


@pytest.fixture(scope="module")
def ensemble(folder):
    from lpcfg_sk import PCFG, VotingParser

    path = folder / "vote"
    members = [("one", make_parser(PCFG())), ("two", make_parser(PCFG(), horizontal=0))]
    save(VotingParser(members).fit(TREES), path)
    return path


def test_ensembles_parse(ensemble, capsys, monkeypatch):
    _, out, _ = parse(monkeypatch, capsys, SENTENCE, ensemble, "--max-memory", "1G")
    assert Tree.from_string(out).words() == SENTENCE.split()
    _, out, _ = parse(monkeypatch, capsys, SENTENCE, ensemble, "--marginals")
    assert "\t0\t6\t" in out
    for option in (["--kbest", 2], ["--scores"]):
        status, _, err = parse(monkeypatch, capsys, SENTENCE, ensemble, *option)
        assert status == 1
        assert "ensemble" in err
    for command in ("inspect", "minimize"):
        status, _, err = run(capsys, command, ensemble)
        assert status == 1
        assert "an ensemble of 2 grammars" in err


@pytest.mark.slow_without_jit
def test_ensembles_are_learners(folder, capsys, monkeypatch, tmp_path):
    model = tmp_path / "model"
    train = ("train", folder / "all.ptb", "-o", model, "--learner", "fast")
    status, out, err = run(capsys, *train)
    assert status == 0, err
    assert "4 grammars" in out
    _, out, _ = parse(monkeypatch, capsys, SENTENCE, model)
    assert Tree.from_string(out).words() == SENTENCE.split()
    status, _, err = run(capsys, "select", folder / "all.ptb", "--learner", "fast")
    assert status == 1
    assert "states of its own" in err


def test_minimize_says_what_it_does_and_stops_in_time(folder, capsys):
    model = folder / "pcfg"
    status, _, err = run(capsys, "minimize", model, "-n", 3)
    assert status == 0
    assert "minimising an automaton of" in err
    status, out, err = run(capsys, "minimize", model, "--max-states", 5)
    assert (status, out) == (1, "")
    n_states = int(err.split("grammar has ")[1].split()[0])
    assert f"go on with --max-states {n_states}" in err
    status, _, err = run(capsys, "minimize", model, "--max-memory", "1K")
    assert status == 1
    assert "keep fewer with -n" in err


@pytest.mark.slow_without_jit
def test_minimize_takes_every_model(folder, capsys, tmp_path):
    fixed = {"max_iter": 2, "tol": None, "validation_fraction": None}
    save(make_parser(EMLPCFG(2, **fixed)).fit(TREES), tmp_path / "em")
    status, out, err = run(capsys, "minimize", tmp_path / "em", "-n", 4, "--json")
    assert status == 0, err
    assert json.loads(out)[1]["states"] == 4


def test_outputs_that_cannot_be_written(tmp_path, capsys, monkeypatch, folder):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    status, _, err = run(capsys, "train", "missing", "-o", tmp_path / "m")
    assert status == 2
    assert "cannot be written to" in err
    status, _, err = run(capsys, "convert", "missing", "-o", tmp_path / "m")
    assert status == 2


def test_a_model_does_not_replace_its_trees(folder, capsys):
    path = folder / "all.ptb"
    status, _, err = run(capsys, "train", path, "-o", path)
    assert status == 1
    assert "is read by this command" in err


def test_a_model_may_lie_beside_its_trees(tmp_path, capsys):
    TREES[:9].write(tmp_path / "trees.mrg")
    command = ["train", tmp_path, "-o", tmp_path / "model", "--learner", "pcfg"]
    assert [run(capsys, *command)[0] for _ in range(2)] == [0, 0]


def test_files_of_trees_among_files_of_sentences(folder, capsys, tmp_path):
    (tmp_path / "text").write_text(f"{SENTENCE}\n\n")
    paths = [tmp_path / "text", folder / "parts" / "1.mrg", tmp_path / "text"]
    status, out, err = run(capsys, "parse", folder / "pcfg", *paths)
    lines = out.splitlines()
    assert (status, len(lines), lines[1]) == (0, 2 + 30 + 2, "")
    assert Tree.from_string(lines[2]).words() == TREES[0].words()
    assert lines[0] == lines[-2]
    assert "parsing the sentences of 30 trees" in err


def interrupted_kernel(*_):
    """What numba's dispatcher makes of an interruption."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError(
            "CPUDispatcher returned a result with an exception"
        ) from error


def test_interruptions_are_keyboard_interrupts(folder, capsys, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        list(map_chunks(interrupted_kernel, [(1,)]))
    with pytest.raises(KeyboardInterrupt):
        list(map_chunks(interrupted_kernel, [(1,), (2,)]))
    with pytest.raises(SystemError), interruptible():
        raise SystemError("something else")
    monkeypatch.setattr(_models, "load_parser", interrupted_kernel)
    status, _, err = run(capsys, "inspect", folder / "pcfg")
    assert status == 130
    assert err == "lpcfg-sk: interrupted\n"


def lpcfg_sk(*arguments, **options):
    command = [sys.executable, "-m", "lpcfg_sk", *map(str, arguments)]
    return subprocess.Popen(command, text=True, **options)


def test_a_pipe_is_answered_line_by_line(folder):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with lpcfg_sk("parse", folder / "pcfg", **pipes) as process:
        for sentence in (SENTENCE, "a cat sees the dog .", ""):
            process.stdin.write(f"{sentence}\n")
            process.stdin.flush()
            # The pipe stays open: an answer must come before the next line.
            line = process.stdout.readline()
            words = Tree.from_string(line).words() if sentence else []
            assert words == sentence.split()
        process.stdin.write(SENTENCE)
        out, _ = process.communicate(timeout=60)
        assert Tree.from_string(out).words() == SENTENCE.split()
        assert process.returncode == 0


@pytest.mark.parametrize("redirection", ["0<&-", ">&-", "2>&-", ">/dev/full"])
def test_closed_streams_give_no_traceback(folder, redirection):
    command = (
        f'"{sys.executable}" -m lpcfg_sk inspect "{folder / "pcfg"}" {redirection}'
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == (redirection == ">/dev/full")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_compressed_sentences(folder, capsys, tmp_path):
    path = tmp_path / "sentences.gz"
    path.write_bytes(gzip.compress(f"{SENTENCE}\n".encode()))
    _, out, _ = run(capsys, "parse", folder / "pcfg", path)
    assert Tree.from_string(out).words() == SENTENCE.split()


def test_compressed_stdin(folder, capsysbinary, monkeypatch):
    pipe = io.BufferedReader(io.BytesIO(gzip.compress(f"{SENTENCE}\n".encode())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert main(["parse", str(folder / "pcfg")]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert Tree.from_string(out).words() == SENTENCE.split()


def test_answers_do_not_become_input(folder, tmp_path):
    path = tmp_path / "text"
    path.write_text(f"{SENTENCE}\n")
    command = f'"{sys.executable}" -m lpcfg_sk parse "{folder / "pcfg"}" text >> text'
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, path.read_text()) == (1, f"{SENTENCE}\n")
    assert "text is where the answers go" in done.stderr
