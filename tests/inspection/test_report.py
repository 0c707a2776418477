"""The page of errors: what it counts, that it escapes, and a browser that runs it."""

import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import pytest

from lpcfg_sk import PCFG, Treebank, VotingParser, load, make_parser, save
from lpcfg_sk._cli import main
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.inspection import report
from lpcfg_sk.metrics import bracket_counts, f1_score, parseval_summary

TREES = load_toy(90)
GOLD = TREES[60:]
VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """Elements of a page, whose tags have to match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        # Rows and cells end with their table here, as this page writes them.
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def boxes(self, kind):
        return [a for a in self.of("span") if kind in a.get("class", "").split()]


@pytest.fixture(scope="module")
def parser():
    # A grammar without a memory of siblings makes mistakes.
    return make_parser(PCFG(), horizontal=0).fit(TREES[:60])


@pytest.fixture(scope="module")
def path(parser, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    report(parser, GOLD, path, title="<b>Errors & more</b>")
    return path


def test_the_page_counts_what_the_metrics_count(parser, path):
    page = Page(path.read_text(encoding="utf-8"))
    predicted = parser.predict(GOLD)
    matched, n_gold, n_predicted = bracket_counts(GOLD, predicted)
    key = 1  # of the legend
    assert len(page.boxes("missed")) - key == (n_gold - matched).sum()
    assert len(page.boxes("wrong")) - key == (n_predicted - matched).sum() > 0
    articles = page.of("article")
    assert len(articles) == len(GOLD)
    for article, tree, guess in zip(articles, GOLD, predicted, strict=True):
        assert article["data-words"] == " ".join(tree.words())
        f1 = f1_score(Treebank([tree]), Treebank([guess]))
        assert float(article["data-f1"]) == pytest.approx(f1, abs=1e-6)
    assert any(f"F1 {100 * f1_score(GOLD, predicted):.2f}" in t for t in page.texts)
    scores = parseval_summary(GOLD, predicted).loc["all"]
    assert f"{scores['f1']:.2f}" in page.texts
    tints = [float(a["style"].removeprefix("--p:")) for a in page.boxes("wrong")]
    assert 0 <= min(tints) < max(tints) <= 1
    assert any("posterior" in a.get("title", "") for a in page.boxes("wrong"))


def test_nothing_is_fetched(path):
    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|src=|href=|@import|url\(", text)


def test_words_and_labels_are_escaped(tmp_path):
    evil = "<script>alert`x`</script>"
    trees = Treebank([f"(S (N<i> {evil}) (V& &amp;))", "(S (N<i> a) (V& b))"])
    path = tmp_path / "page.html"
    report(make_parser(PCFG(), min_count=1).fit(trees), trees, path, title=evil)
    text = path.read_text()
    assert evil not in text
    page = Page(text)
    assert evil in "".join(page.texts)
    assert page.of("article")[0]["data-words"].startswith("<script>")
    assert "<i>N&lt;i&gt;</i>" in text
    assert len(page.of("script")) == 1


def test_ensembles_and_perfect_parsers(tmp_path):
    vote = VotingParser([("a", make_parser()), ("b", make_parser(horizontal=0))])
    report(vote.fit(TREES[:60]), GOLD[:5], tmp_path / "page.html")
    assert "VotingParser" in (tmp_path / "page.html").read_text()
    trees = Treebank(["(S (A a) (B b))"])
    report(make_parser(PCFG(), min_count=1).fit(trees), trees, tmp_path / "page.html")
    assert len(Page((tmp_path / "page.html").read_text()).boxes("wrong")) == 1


def test_deep_trees(tmp_path):
    deep = Treebank(["(S " * 3000 + "(A a) (B b)" + ")" * 3000])
    flat = Treebank(["(S (A a) (B b))"])
    parser = make_parser(PCFG(), min_count=1).fit(flat)
    report(parser, deep, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("missed") > 2000


def test_gold_trees_are_needed(parser, tmp_path):
    with pytest.raises(ValueError, match="report"):
        report(parser, [["no", "tree"]], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow_without_jit
def test_the_command(parser, tmp_path, capsys):
    save(parser, tmp_path / "model")
    GOLD.write(tmp_path / "gold.mrg")
    arguments = ["report", "model", "gold.mrg", "-o", "page.html"]
    arguments = [
        str(tmp_path / a) if "." in a or a == "model" else a for a in arguments
    ]
    assert main(arguments) == 0
    assert "30 sentences" in capsys.readouterr().out
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Errors of model" in text
    assert load(tmp_path / "model").predict(GOLD) == parser.predict(GOLD)


def browse(path):
    """The page as a browser shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium is installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    done = subprocess.run(
        [
            browser,
            *options,
            f"--user-data-dir={path.parent / 'profile'}",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        pytest.skip(f"chromium does not run here: {done.stderr[-200:]}")
    return done.stdout


def test_a_browser_sorts_and_filters(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    found = Page(browse(path))
    scores = [float(a["data-f1"]) for a in found.of("article")]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]
    assert "30 of 30 sentences" in found.texts
    labels = {a["data-labels"] for a in found.of("article")}
    label = next(unescape(names.split()[0]) for names in labels if names)
    choose = (
        "<script>by('order').value = 'length -1'; "
        f"by('label').value = '{label}'; by('label').dispatchEvent(new Event('input'))"
        "</script></body>"
    )
    changed = tmp_path / "changed.html"
    changed.write_text(text.replace("</body>", choose), encoding="utf-8")
    found = Page(browse(changed))
    lengths = [int(a["data-length"]) for a in found.of("article")]
    assert lengths == sorted(lengths, reverse=True)
    shown = [a for a in found.of("article") if "hidden" not in a]
    assert 0 < len(shown) < 30
    assert all(label in a["data-labels"].split() for a in shown)
