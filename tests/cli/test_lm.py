import io
import json
import os
import threading

import pytest

from lpcfg_sk._cli import main
from lpcfg_sk.language_model import KneserNeyLM, read_arpa

TEXT = "the dog barks\nthe cat purrs\na dog sleeps\nthe cat sleeps\n" * 3


@pytest.fixture
def files(tmp_path):
    (tmp_path / "text").write_text(TEXT)
    return tmp_path


def train(files, *options):
    arguments = ["lm", "train", str(files / "text"), "-o", str(files / "m.arpa")]
    assert main([*arguments, *options]) == 0
    return read_arpa(files / "m.arpa")


def test_train_and_score(files, capsys):
    model = train(files, "--order", "2")
    assert "9 words" in capsys.readouterr().out
    assert main(["lm", "score", str(files / "m.arpa"), str(files / "text")]) == 0
    out = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    X = [line.split() for line in TEXT.splitlines()]
    assert float(out["perplexity"]) == pytest.approx(model.perplexity(X), rel=1e-5)
    assert (out["sentences"], out["events"], out["unknown"]) == ("12", "48", "0")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_read_once_and_whole(files):
    expected = train(files)
    os.mkfifo(files / "pipe")
    writer = threading.Thread(target=(files / "pipe").write_text, args=(TEXT,))
    writer.start()
    arguments = ["lm", "train", str(files / "pipe"), "-o", str(files / "p.arpa")]
    assert main(arguments) == 0
    writer.join()
    X = [line.split() for line in TEXT.splitlines()]
    assert read_arpa(files / "p.arpa").perplexity(X) == expected.perplexity(X)


def test_tokens_and_json(files, capsys, monkeypatch):
    model = train(files)
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("the bird\n\n"))
    assert main(["lm", "score", str(files / "m.arpa"), "--tokens"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    tokens = [line.split("\t")[0] for line in blocks[0].splitlines()]
    assert tokens == ["the", "bird", "</s>"]
    assert blocks[1].split("\t")[0] == "</s>"
    monkeypatch.setattr("sys.stdin", io.StringIO("the bird\n"))
    assert main(["lm", "score", str(files / "m.arpa"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unknown"] == 1
    known = model.perplexity([["the", "bird"]])
    assert report["perplexity_without_unknown"] == pytest.approx(known)
    assert report["perplexity"] > known
    monkeypatch.setattr("sys.stdin", io.StringIO("the\n"))
    assert main(["lm", "score", str(files / "m.arpa"), "--tokens", "--json"]) == 0
    assert [t for t, _ in json.loads(capsys.readouterr().out)] == ["the", "</s>"]


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_batches_of_a_stream_follow_each_other(files, order, capsys, monkeypatch):
    model = train(files, "--stream", "--order", order)
    X = [line.split() for line in TEXT.splitlines()]
    expected = model.token_scores(X)
    for size in (1, 5):
        monkeypatch.setattr("lpcfg_sk._cli._lm._BATCH", size)
        capsys.readouterr()
        score = ["lm", "score", str(files / "m.arpa"), str(files / "text")]
        assert main([*score, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        total = expected["log10_prob"].sum()
        assert report["log10_prob"] == pytest.approx(total, rel=1e-12)
        assert report["sentences"] == len(X)
        assert main([*score, "--json", "--tokens"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [[t for t, _ in row] for row in rows] == X
        scores = [score for row in rows for _, score in row]
        assert scores == pytest.approx(expected["log10_prob"].tolist(), rel=1e-12)


def test_options_of_train(files):
    (files / "words").write_text("the\ncat\n")
    model = train(files, "--stream", "--vocabulary", str(files / "words"))
    assert model.mode == "stream"
    assert set(model.vocabulary_) == {"<unk>", "the", "cat"}
    model = train(files, "--cutoffs", "1,4", "--min-count", "4")
    X = [line.split() for line in TEXT.splitlines()]
    expected = KneserNeyLM(3, mode="sentence", min_count=4, cutoffs=[1, 4]).fit(X)
    assert model.perplexity(X) == pytest.approx(expected.perplexity(X))


def test_errors_are_one_line(files, capsys):
    assert main(["lm", "score", str(files / "text"), "x"]) == 1
    assert "ARPA" in capsys.readouterr().err
    (files / "binary").write_bytes(b"\xe5\x00")
    assert main(["lm", "score", str(files / "binary"), "x"]) == 1
    assert "binary is not text in UTF-8" in capsys.readouterr().err
    assert main(["lm", "train", str(files / "none"), "-o", str(files / "x")]) == 1
    missing = str(files / "no" / "x")
    assert main(["lm", "train", str(files / "text"), "-o", missing]) == 2
    assert "there is no folder" in capsys.readouterr().err
    options = ["-o", str(files / "x"), "--cutoffs", "1;2"]
    assert main(["lm", "train", str(files / "text"), *options]) == 2
    assert "whole numbers" in capsys.readouterr().err
    assert main(["lm", "train", str(files / "text")]) == 2
    assert main(["lm"]) == 2
