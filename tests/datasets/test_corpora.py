"""Corpora in NLTK's layout, written by hand."""

import os
import zipfile

import pytest

from lpcfg_sk import read_treebank
from lpcfg_sk._cli import main
from lpcfg_sk.datasets import (
    _corpora,
    load_alpino,
    load_brown,
    load_cess_cat,
    load_cess_esp,
    load_floresta,
    load_penn_sample,
    load_sinica,
)
from lpcfg_sk.exceptions import TreebankWarning

pytestmark = pytest.mark.filterwarnings("ignore:.* sentences of Alpino have crossing")

PENN = """
( (S
    (NP-SBJ-1 (DT {det}) (NN cat) )
    (VP (VBZ wants)
      (S (NP-SBJ (-NONE- *-1) ) (VP (TO to) (VP (VB sleep) ))))
    (. .) ))
"""

CESS = """( (S
  (sn.e-SUJ *0*)
  (grup.verb (vmip3p0 Duermen dormir))
  (sn-CD (espec.ms (da0ms0 el el)) (grup.nom.ms (ncms000 año año)))
  (Fp . .)))
( (S (sn-SUJ (np00000 Ana Ana)) (grup.verb (vmip3s0 canta cantar)) (Fp . .)))
"""

FLORESTA = """#1 CF1-1 Um gato dorme .
(STA:fcl
  (SUBJ:np (>N:art Um) (H:n gato))
  (P:v-fin dorme)
  (.))

#2 CF1-2 Sim : é .
(UTT:fcl (ADVL:adv Sim) (: :) (P:v-fin é)
  (. .))
"""

SINICA = """#1:1.[0] NP(Head:Nab:貓)#。(PERIODCATEGORY)
#2:1.[1] S(agent:NP(property:Nhaa:我|Head:Nab:貓)|time:Dd:常|Head:VA4:睡)#，(COMMA)
"""

#: The second sentence crosses, the third is cut off, the fourth has a pointer.
ALPINO = """<?xml version="1.0" encoding="ISO-8859-1"?>
<treebank>
<alpino_ds version="1.1">
  <node begin="0" cat="top" end="3" id="0" rel="top">
    <node begin="2" end="3" id="1" pos="punct" rel="--" root="." word="."/>
    <node begin="0" cat="smain" end="2" id="2" rel="--">
      <node begin="1" end="2" id="3" pos="verb" rel="hd" root="slaap" word="slaapt"/>
      <node begin="0" end="1" id="4" pos="name" rel="su" root="Zoë" word="Zoë"/>
    </node>
  </node>
  <sentence>Zoë slaapt .</sentence>
</alpino_ds>
<alpino_ds version="1.1">
  <node begin="0" cat="smain" end="3" id="0" rel="top">
    <node begin="1" end="2" id="1" pos="verb" rel="hd" word="wil"/>
    <node begin="0" cat="inf" end="3" id="2" rel="vc">
      <node begin="0" end="1" id="3" pos="noun" rel="obj1" word="kaas"/>
      <node begin="2" end="3" id="4" pos="verb" rel="hd" word="eten"/>
    </node>
  </node>
</alpino_ds>
<alpino_ds version="1.1"><node begin="0" cat="top"></alpino_ds>
<alpino_ds version="1.1">
  <node begin="0" cat="np" end="2" id="0" rel="top">
    <node begin="0" end="1" id="1" pos="det" rel="det" word="een"/>
    <node begin="0" end="1" id="2" index="1" rel="su"/>
    <node begin="1" end="2" id="3" pos="noun" rel="hd" word="(haak"/>
  </node>
</alpino_ds>
</treebank>
"""

TREES = {
    "alpino": [
        "(top (smain (name Zoë) (verb slaapt)) (punct .))",
        "(np (det een) (noun -LRB-haak))",
    ],
    "cess": [
        "(ROOT (S (grup.verb (vmip3p0 Duermen)) (sn (espec.ms (da0ms0 el)) "
        "(grup.nom.ms (ncms000 año))) (Fp .)))",
        "(ROOT (S (sn (np00000 Ana)) (grup.verb (vmip3s0 canta)) (Fp .)))",
    ],
    "floresta": [
        "(fcl (np (art Um) (n gato)) (v-fin dorme) (. .))",
        "(fcl (adv Sim) (: :) (v-fin é) (. .))",
    ],
    "sinica": [
        "(NP (Nab 貓))",
        "(S (NP (Nhaa 我) (Nab 貓)) (Dd 常) (VA4 睡))",
    ],
}

#: Files of each package below ``corpora``, as NLTK unpacks them.
FILES = {
    "treebank/combined/wsj_0001.mrg": PENN.format(det="The"),
    "treebank/combined/wsj_0159.mrg": PENN.format(det="A"),
    "treebank/combined/wsj_0160.mrg": PENN.format(det="Some"),
    "treebank/combined/wsj_0199.mrg": PENN.format(det="This"),
    "treebank/parsed/wsj_0001.prd": "( (S (X other) ))",
    "treebank/combined/README": "text",
    "brown/ca01": "\n\n\tThe/at cat/nn sleeps/vbz ./.\n\n\n\tIt/pps sleeps/vbz ./.\n",
    "brown/cb01": "\n\n\t1/2/cd cat/nn ./.\n",
    "brown/cats.txt": "ca01 news\ncb01 editorial\n",
    "cess_esp/1_19991101.tbf": CESS.encode("iso-8859-15"),
    "cess_cat/1_19991101.tbf": CESS.encode("utf-8"),
    "floresta/Floresta_sintactica.ptb": FLORESTA.encode("iso-8859-15"),
    "sinica_treebank/parsed": SINICA,
    "sinica_treebank/README": "text",
    "alpino/alpino.xml": ALPINO.encode("iso-8859-1"),
}
LOADERS = {
    "alpino": load_alpino,
    "treebank": load_penn_sample,
    "brown": load_brown,
    "cess_esp": load_cess_esp,
    "cess_cat": load_cess_cat,
    "floresta": load_floresta,
    "sinica_treebank": load_sinica,
}


def content(text):
    return text if isinstance(text, bytes) else text.encode()


def unpacked(folder):
    for name, text in FILES.items():
        path = folder / "corpora" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(text))


def zipped(folder):
    (folder / "corpora").mkdir()
    for package in LOADERS:
        with zipfile.ZipFile(folder / "corpora" / f"{package}.zip", "w") as archive:
            for name, text in FILES.items():
                if name.startswith(f"{package}/"):
                    archive.writestr(name, content(text))


@pytest.fixture(params=[unpacked, zipped])
def data(request, tmp_path, monkeypatch):
    """NLTK's data folder, the second one that ``NLTK_DATA`` names."""
    folder = tmp_path / "nltk_data"
    folder.mkdir()
    request.param(folder)
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join(["/no/such", str(folder)]))
    return folder


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A machine without any data of NLTK."""
    folders = [tmp_path / "here", tmp_path / "there"]
    monkeypatch.setattr(_corpora, "data_folders", lambda: folders)
    return folders


def lines(trees):
    return [str(tree) for tree in trees]


def test_parts_of_the_penn_sample(data):
    parts = {part: load_penn_sample(part) for part in ("train", "dev", "test", "all")}
    first = {part: [tree.words()[0] for tree in trees] for part, trees in parts.items()}
    assert first == {
        "train": ["The", "A"],
        "dev": ["Some"],
        "test": ["This"],
        "all": ["The", "A", "Some", "This"],
    }
    assert lines(parts["dev"]) == [
        "(ROOT (S (NP (DT Some) (NN cat)) (VP (VBZ wants) (S (VP (TO to) "
        "(VP (VB sleep))))) (. .)))"
    ]


def test_brown_is_cut_at_tokens(data, monkeypatch):
    monkeypatch.setattr(_corpora, "_BROWN_CUTS", (5, 8))
    assert load_brown() == [["The", "cat", "sleeps", "."], ["It"]]
    assert load_brown("dev") == [["sleeps", "."], ["1/2"]]
    assert load_brown("test") == [["cat", "."]]
    assert load_brown("all") == [
        ["The", "cat", "sleeps", "."],
        ["It", "sleeps", "."],
        ["1/2", "cat", "."],
    ]


@pytest.mark.parametrize("load", [load_cess_esp, load_cess_cat])
def test_cess(data, load):
    assert lines(load()) == TREES["cess"]


def test_floresta(data):
    assert lines(load_floresta()) == TREES["floresta"]
    assert str(load_floresta(keep_functions=True)[0]) == (
        "(STA:fcl (SUBJ:np (>N:art Um) (H:n gato)) (P:v-fin dorme) (. .))"
    )


def test_sinica(data):
    assert lines(load_sinica()) == TREES["sinica"]


def test_sinica_is_read_as_nltk_reads_it(data):
    parsing = pytest.importorskip("nltk.tree")
    for line, tree in zip(SINICA.splitlines(), load_sinica(), strict=True):
        own = line.split(" ", 1)[1].rpartition(")#")[0] + ")"
        expected = parsing.sinica_parse(own)
        assert str(tree) == " ".join(str(expected).split())


@pytest.mark.parametrize("package", LOADERS)
def test_explicit_paths(data, package, request):
    load = LOADERS[package]
    expected = load()
    request.getfixturevalue("nothing")
    place = data / "corpora" / package
    place = place if place.is_dir() else place.with_suffix(".zip")
    # Folders further up hold other corpora, too.
    for path in (place, str(data), data / "corpora"):
        assert load(path=path) == expected


@pytest.mark.parametrize("package", LOADERS)
def test_absent_corpora_say_how_to_get_them(nothing, package):
    with pytest.raises(FileNotFoundError, match="not on this machine") as caught:
        LOADERS[package]()
    assert f'nltk.download("{package}")' in str(caught.value)
    assert all(str(folder) in str(caught.value) for folder in nothing)
    with pytest.raises(FileNotFoundError, match="has no files of the corpus"):
        LOADERS[package](path=nothing[0])


def test_a_part_may_be_absent(tmp_path):
    (tmp_path / "wsj_0161.mrg").write_text(PENN.format(det="One"))
    assert len(load_penn_sample("dev", path=tmp_path)) == 1
    assert len(load_penn_sample("dev", path=tmp_path / "wsj_0161.mrg")) == 1
    with pytest.raises(FileNotFoundError, match="wsj_0180 to wsj_0199"):
        load_penn_sample("test", path=tmp_path)
    with pytest.raises(ValueError, match="part"):
        load_penn_sample("tests", path=tmp_path)


def test_malformed_trees_are_counted(tmp_path):
    bad = "#3:1.[0] NP(Head:Nab:貓#\n"
    (tmp_path / "parsed").write_text(bad + SINICA, encoding="utf-8")
    with pytest.warns(TreebankWarning, match="parsed"):
        assert lines(load_sinica(tmp_path)) == TREES["sinica"]


def test_the_folders_of_nltk_are_searched(monkeypatch):
    data = pytest.importorskip("nltk.data")
    monkeypatch.delenv("NLTK_DATA", raising=False)
    ours = [str(folder) for folder in _corpora.data_folders()]
    # Those of the environment, when NLTK was imported, come first.
    assert ours == data.path[-len(ours) :]
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join(["", "one", "~/two"]))
    first = [str(folder) for folder in _corpora.data_folders()[:2]]
    assert first == ["one", os.path.expanduser("~/two")]


def test_large_files_in_archives_are_refused(tmp_path, monkeypatch):
    zipped(tmp_path)
    monkeypatch.setattr(_corpora, "_MAX_BYTES", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        load_sinica(tmp_path / "corpora" / "sinica_treebank.zip")


def test_deep_trees_and_long_tokens(tmp_path):
    deep = "S(Head:" * 5000 + "NP(Head:Nab:貓" + ")" * 5001
    deep = deep.replace("Head:NP", "theme:NP").replace("S(Head:S", "S(theme:S")
    long = "NP(Head:Nab:" + "貓" * 200_000 + ")"
    (tmp_path / "parsed").write_text(f"#1 {deep}#\n#2 {long}#\n", encoding="utf-8")
    trees = load_sinica(tmp_path)
    assert len(trees) == 2
    assert trees.n_nodes == 5002 + 2


@pytest.mark.slow_without_jit
def test_the_sample_of_the_penn_treebank(wsj_train, wsj_dev):
    from tests.conftest import DATA

    for part, expected in (("train", wsj_train), ("dev", wsj_dev)):
        assert load_penn_sample(part, path=DATA / "wsj") == expected


def test_demo_on_the_penn_sample(nothing, capsys):
    assert main(["demo", "--corpus", "penn"]) != 0
    assert 'nltk.download("treebank")' in capsys.readouterr().err


def test_files_of_a_loader_are_those_of_the_reader(data):
    folder = data / "corpora" / "treebank" / "combined"
    if folder.is_dir():
        assert load_penn_sample("all") == read_treebank(folder)


def test_sentences_of_alpino_without_crossing_branches(data, tmp_path):
    with pytest.warns(TreebankWarning, match="2 of 4 sentences of Alpino"):
        assert lines(load_alpino()) == TREES["alpino"]
    path = tmp_path / "alpino.xml"
    path.write_text("<alpino_ds></alpino_ds>")
    with pytest.raises(ValueError, match="1 sentences and none without crossing"):
        load_alpino(path)
