import pytest

from lpcfg_sk import Tree, make_parser, save
from lpcfg_sk.datasets import load_toy

spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
import lpcfg_sk.spacy  # noqa: E402, F401

TEXT = "he worked again . he worked ."


@pytest.fixture(scope="module")
def parser():
    return make_parser().fit(load_toy(300))


@pytest.fixture
def nlp(parser, tmp_path):
    save(parser, tmp_path / "parser.lpcfg")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("lpcfg_sk", config={"path": str(tmp_path / "parser.lpcfg")})
    return nlp


def test_sentences_have_the_trees_of_the_parser(nlp, parser):
    doc = nlp(TEXT)
    expected = [str(t) for t in parser.predict(["he worked again .", "he worked ."])]
    assert doc._.parse_strings == expected
    first = next(doc.sents)
    assert first._.parse_string == expected[0]
    assert first._.labels == ("S",)
    assert [c.text for c in first._.constituents[:3]] == [
        "he worked again .",
        "he",
        "worked again",
    ]
    assert [c.text for c in first._.children] == ["he", "worked again"]
    assert first._.parent is None


def test_spans_know_whether_they_are_constituents(nlp):
    doc = nlp(TEXT)
    assert doc[1:3]._.labels == ("VP",)
    assert doc[1:3]._.parse_string == "(VP (VBD worked) (ADVP (RB again)))"
    assert doc[1:3]._.parent.text == "he worked again ."
    assert doc[1:2]._.labels == ()
    assert doc[1:2]._.parse_string == "(VBD worked)"
    assert doc[0:2]._.labels == ()
    assert doc[0:2]._.parse_string is None
    assert doc[0:2]._.parent.text == "he worked again ."


def test_white_space_is_no_part_of_trees(nlp):
    doc = nlp("he  worked \n\n again . ")
    sentence = next(doc.sents)
    assert Tree.from_string(sentence._.parse_string).leaves() == [
        "he",
        "worked",
        "again",
        ".",
    ]
    assert sentence._.labels == ("S",)
    assert nlp("")._.parse_strings == nlp("")._.parse_strings == []
    assert nlp(" \n ")._.parse_strings == [""]
    assert next(nlp(" \n ").sents)._.labels == ()


def test_streams_bytes_and_folders(nlp, tmp_path):
    docs = list(nlp.pipe([TEXT, "", "he worked ."] * 3, batch_size=2))
    assert [d._.parse_strings for d in docs] == [
        nlp(d.text)._.parse_strings for d in docs
    ]
    again = spacy.tokens.Doc(nlp.vocab).from_bytes(docs[0].to_bytes())
    assert again[1:3]._.labels == ("VP",)
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded(TEXT)._.parse_strings == docs[0]._.parse_strings


def test_what_is_missing_is_named(parser):
    nlp = spacy.blank("en")
    component = nlp.add_pipe("lpcfg_sk")
    with pytest.raises(ValueError, match="has no parser"):
        nlp("he worked .")
    component.parser = parser
    with pytest.raises(ValueError, match="sentencizer"):
        nlp("he worked .")
    nlp.add_pipe("sentencizer", before="lpcfg_sk")
    assert next(nlp("he worked .").sents)._.labels == ("S",)
