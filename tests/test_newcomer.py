"""What a newcomer types, one line each, and what comes of it."""

import copy
import io
import pickle
import re
import warnings

import nltk
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import Pipeline

import lpcfg_sk
from lpcfg_sk import (
    PCFG,
    MarginEMPCFG,
    Parser,
    ShardedTreebank,
    Tree,
    Treebank,
    make_parser,
    read_treebank,
)
from lpcfg_sk._cli import main
from lpcfg_sk.datasets import load_toy
from lpcfg_sk.exceptions import (
    ChartMemoryError,
    NotFittedError,
    ParseError,
    ParseFailureWarning,
)
from lpcfg_sk.inspection import compare, report, results_table
from lpcfg_sk.metrics import (
    f1_score,
    label_report,
    parseval,
    parseval_scorer,
    parseval_summary,
)
from lpcfg_sk.treebank import tokenize

TREES = load_toy(120)
PARSER = make_parser(PCFG()).fit(TREES)
HE = "(S (NP (PRP he)) (VP (VBD worked) (ADVP (RB again))) (. .))"
WORDS = ["he", "worked", "again", "."]
LONG = ["he", *["worked"] * 120]
QUOTED = "(S (`` ``) (NP (PRP he)) (VP (VBD left)) ('' '') (. .))"
QUOTES = make_parser(PCFG()).fit([QUOTED, HE])
SEARCH = GridSearchCV(make_parser(), {"learner__smoothing": [0.1, 1.0]}, cv=2)
SLOW = make_parser(MarginEMPCFG(max_iter=1))

#: Lines and their values.
ANSWERS = [
    # Sentences in all forms.
    ("PARSER.predict([WORDS])[0]", Tree.from_string(HE)),
    ("PARSER.predict(['he worked again .'])[0]", Tree.from_string(HE)),
    ("str(PARSER.predict([HE])[0])", HE),
    ("PARSER.predict([Tree.from_string(HE)])[0]", Tree.from_string(HE)),
    ("PARSER.predict([nltk.Tree.fromstring(HE)])[0]", Tree.from_string(HE)),
    ("PARSER.predict((WORDS,)).sentences()", [WORDS]),
    ("PARSER.predict(row for row in [WORDS]).sentences()", [WORDS]),
    ("PARSER.predict(np.array(['he worked again .'])).sentences()", [WORDS]),
    ("PARSER.predict(pd.Series(['he worked again .'])).sentences()", [WORDS]),
    ("PARSER.predict(np.array([WORDS, 0], dtype=object)[:1]).sentences()", [WORDS]),
    ("PARSER.predict([WORDS, 'he worked again .', HE]).tolist()[2]", TREES[0]),
    ("PARSER.predict([[('he', 'PRP'), ('worked', 'VBD')], []]).lengths.sum()", 2),
    ("len(PARSER.predict([]))", 0),
    ("len(PARSER.predict(TREES))", 120),
    ("PARSER.predict({'he worked again .'}).sentences()", [WORDS]),
    ("PARSER.predict(io.StringIO('he worked again .')).sentences()", [WORDS]),
    ("PARSER.predict(pd.DataFrame({'text': ['he left .']})['text']).shape", (1,)),
    ("PARSER.predict(map(str.split, ['he worked again .'])).sentences()", [WORDS]),
    ("QUOTES.predict(['“ he left ” .'])[0].tags()", ["``", "PRP", "VBD", "''", "."]),
    (
        "QUOTES.predict(['\" he left \" .']).sentences()",
        [['"', "he", "left", '"', "."]],
    ),
    ("QUOTES.predict(['« he left » .'])[0].tags()[0]", "``"),
    ("PARSER.predict([tuple(WORDS), np.array(WORDS)]).sentences()", [WORDS, WORDS]),
    ("PARSER.predict([['(', 'he', ')']]).sentences()", [["(", "he", ")"]]),
    # Every row has an answer.
    ("status(PARSER, ['', ' \\t\\n', []])", ["empty", "empty", "empty"]),
    ("PARSER.predict([WORDS, [], WORDS]).is_parsed.tolist()", [True, False, True]),
    ("PARSER.predict(['', 'he worked again .']).is_parsed.tolist()", [False, True]),
    ("str(PARSER.predict([[]])[0])", ""),
    ("PARSER.parse_kbest([[]], 3)", [[]]),
    ("PARSER.sentence_log_prob([[], WORDS])[0]", -np.inf),
    ("[len(f) for f in PARSER.marginals([[], WORDS])][0]", 0),
    ("[len(f) > 0 for f in PARSER.span_marginals([[], WORDS])]", [False, True]),
    ("status(PARSER, [WORDS, []])", ["parsed", "empty"]),
    ("status(PARSER, [['worked', 'he'], WORDS])", ["flat", "parsed"]),
    ("status(strict('skip'), [['worked', 'he'], WORDS])", ["skipped", "parsed"]),
    ("status(strict('flat', 50_000), [WORDS, LONG])", ["parsed", "flat"]),
    ("status(strict('skip', 50_000), [LONG, WORDS])", ["skipped", "parsed"]),
    ("reported([WORDS, []])", ["parsed", "empty"]),
    # What a parser does.
    ("len(PARSER.parse_kbest([WORDS], k=3)[0])", 3),
    ("PARSER.parse_kbest([WORDS])[0][0][0].words()", WORDS),
    ("PARSER.marginals([WORDS], normalize=True)[0]['marginal'].max().round(6)", 1.0),
    ("PARSER.span_marginals([WORDS])[0]['label'].iloc[0]", "S"),
    ("PARSER.sentence_log_prob([WORDS]).shape", (1,)),
    ("PARSER.score_samples(TREES[:2]).shape", (2,)),
    ("PARSER.score_samples([HE]).shape", (1,)),
    ("len(PARSER.sample(3, random_state=0))", 3),
    ("PARSER.score(TREES[:20]) > 0.5", True),
    ("clone(PARSER).fit(TREES[:9]).partial_fit(TREES[9:19]).score([HE]) <= 1", True),
    ("hasattr(make_parser(SpectralLPCFG()), 'partial_fit')", False),
    ("len(PARSER.parse_kbest([WORDS], k=10_000)[0]) < 10_000", True),
    ("type(PARSER.parse_kbest([WORDS])[0][0][1])", float),
    ("PARSER.parse_kbest([['worked', 'he']])", [[]]),
    ("list(PARSER.marginals([WORDS])[0])", ["label", "start", "end", "marginal"]),
    ("list(PARSER.span_marginals([WORDS])[0])[3:]", ["marginal", "tag"]),
    ("len(PARSER.span_marginals([WORDS], precise=False))", 1),
    ("len(PARSER.sample(0))", 0),
    ("PARSER.sample(3, 0) == PARSER.sample(3, random_state=0)", True),
    (
        "PARSER.score(TREES[:3], sample_weight=[1, 0, 0]) == PARSER.score(TREES[:1])",
        True,
    ),
    (
        "PARSER.to_nltk_parser().parse_one(WORDS) == nltk.Tree.fromstring(HE)",
        True,
    ),
    ("PARSER.to_nltk_parser().parse_one(['worked', 'he'])", None),
    # Scores are from 0 to 1, tables in percent.
    ("f1_score(TREES, TREES)", 1.0),
    ("type(PARSER.score(TREES[:5]))", float),
    (
        "make_scorer(f1_score)(PARSER, TREES, TREES) == PARSER.score(TREES)",
        True,
    ),
    (
        "len(cross_val_score(PARSER, TREES[:9], cv=3, scoring=parseval_scorer))",
        3,
    ),
    ("cross_val_predict(make_parser(), TREES[:9], cv=3).shape", (9,)),
    ("parseval_summary(TREES, TREES)['f1'].tolist()", [100.0, 100.0]),
    ("max(map(len, str(parseval_summary(TREES, TREES)).split('\\n'))) <= 80", True),
    ("label_report(TREES, TREES).loc['NP', 'f1']", 100.0),
    # It is a pipeline.
    ("isinstance(make_parser(), Pipeline)", True),
    ("type(make_parser())", Parser),
    ("list(PARSER.named_steps)", ["binarize", "rarewords", "learner"]),
    ("PARSER[:-1].transform(TREES[:1]).binarized", True),
    ("PARSER[1:].predict(PARSER[:1].transform([WORDS])).sentences()", [WORDS]),
    ("type(clone(PARSER))", Parser),
    ("pickle.loads(pickle.dumps(PARSER)).predict([WORDS])[0]", TREES[0]),
    ("copy.deepcopy(PARSER).predict([WORDS])[0]", TREES[0]),
    ("make_parser().set_params(learner__decoder='viterbi')[-1].decoder", "viterbi"),
    ("'Parser' in PARSER._repr_html_()", True),
    ("len(cross_val_score(make_parser(), TREES[:30], cv=3))", 3),
    ("PARSER[0].inverse_transform(PARSER[0].transform(TREES)) == TREES", True),
    ("[len(part) for part in train_test_split(TREES, random_state=0)]", [90, 30]),
    ("len(results_table(SEARCH.fit(TREES[:30])))", 2),
    ("type(SEARCH.fit(TREES[:30]).best_estimator_)", Parser),
    ("saved(PARSER).predict([WORDS])[0]", TREES[0]),
    ("type(saved(Pipeline(PARSER.steps)))", Parser),
    # Trees.
    ("tree.leaves()", WORDS),
    ("tree.pos()[0]", ("he", "PRP")),
    ("tree.height()", nltk.Tree.fromstring(HE).height()),
    ("tree.productions()[0]", "S -> NP VP ."),
    (
        "[t.label for t in tree.subtrees(lambda t: t.height() > 2)]",
        ["S", "NP", "VP", "ADVP"],
    ),
    ("tree.spans()[:2]", [("S", 0, 4), ("NP", 0, 1)]),
    ("Tree.from_string(str(Tree('X', ['(', ')']))).words()", ["(", ")"]),
    ("len(TREES[:2] + TREES[2:5])", 5),
    ("sum([TREES[:2], TREES[2:4]], Treebank([])) == TREES[:4]", True),
    ("TREES[[2, 0]].tolist() == [TREES[2], TREES[0]]", True),
    ("TREES[TREES.lengths < 6].lengths.max() < 6", True),
    ("TREES[np.arange(120) < 2] == TREES[:2]", True),
    ("Treebank(['((S a))'])[0].label", "ROOT"),
    ("read_treebank(io.StringIO(f'{HE}{HE}')) == TREES[[0, 0]]", True),
    (
        "Treebank(t.to_nltk() for t in TREES) == TREES == Treebank(map(str, TREES))",
        True,
    ),
    ("(tree in TREES, TREES.index(tree))", (True, 0)),
    ("tree.draw().splitlines()[1]", "├── NP"),
    ("(tree._repr_svg_()[:4], '<table' in TREES._repr_html_())", ("<svg", True)),
    ("reopened([HE, HE]).groups.tolist()", [0, 0]),
    ("reopened([HE, HE]).sources['line'].tolist()", [1, 2]),
    ("shards([HE, HE]).groups.tolist()", [0, 0, 0, 0]),
    ("tokenize('He left (early).')", ["He", "left", "-LRB-", "early", "-RRB-", "."]),
    ("tokenize('It isn’t… ‘so’.')", ["It", "is", "n't", "…", "‘", "so", "’", "."]),
    ("Treebank(['he worked']).sentences()", [["he", "worked"]]),
    ("lpcfg_sk.Parser is Parser", True),
    # Numbers of warnings.
    ('warned(\'PARSER.predict([["worked", "he"]] * 3)\')', 1),
    ('warned(\'PARSER.predict([["worked", "he"]], return_status=True)\')', 0),
    ("warned('PARSER.predict([[\"he worked .\"]], return_status=True)')", 1),
    ("warned('cross_val_score(SLOW, TREES[:12], cv=3)')", 1),
]

#: Lines that raise: the error, and what its message says.
ERRORS = [
    ("PARSER.predict('he worked')", TypeError, r"one string; wrap it in a list"),
    ("PARSER.predict(tree)", TypeError, r"one tree; wrap it in a list, \[tree\]"),
    ("Treebank(tree)", TypeError, r"one tree; wrap it in a list"),
    ("Treebank(nltk.Tree.fromstring(HE))", TypeError, r"one tree"),
    ("Treebank({'a': HE})", TypeError, r"got a dict; pass its values"),
    ("Treebank([3])", TypeError, "item 0 is a int; a treebank is made of"),
    ("Treebank(['(S (N a)'])", ValueError, r"item 0, line 1.*never closed"),
    ("PARSER.predict(np.zeros((2, 2)))", TypeError, r"array of dtype float64"),
    ("PARSER.predict(None)", TypeError, "NoneType"),
    ("PARSER.parse_kbest([WORDS], k=0)", ValueError, "k must be"),
    ("make_parser().predict([WORDS])", NotFittedError, "not fitted"),
    ("make_parser().parse_kbest([WORDS])", NotFittedError, "This Parser .* not fitted"),
    ("make_parser().partial_fit(TREES)", NotFittedError, "This Parser .* not fitted"),
    ("make_parser(LogisticRegression())", TypeError, "must learn from trees"),
    ("make_parser(PCFG)", TypeError, r"an estimator such as PCFG\(\)"),
    ("make_parser('pcfg')", TypeError, r"an estimator such as PCFG\(\)"),
    ("make_parser(PCFG(), smooth=1)", TypeError, "no parameter of the preprocessing"),
    ("make_parser(PCFG(on_failure='x')).fit(TREES)", ValueError, "'on_failure'"),
    ("make_parser(SpectralLPCFG()).partial_fit", AttributeError, "partial_fit"),
    ("make_parser(PCFG()).fit([WORDS])", ValueError, "needs trees beside sentences"),
    ("PARSER.score([WORDS])", ValueError, "needs a gold tree"),
    ("strict('raise').predict([WORDS, ['worked']])", ParseError, "row 1 has no parse"),
    (
        "strict('raise', 50_000).predict([WORDS, LONG])",
        ChartMemoryError,
        r"row 1 \(121 words\)",
    ),
    ("tokenize(['a', 'b'])", TypeError, "one sentence as a str"),
    ("read_treebank(HE)", FileNotFoundError, "this looks like a tree"),
    ("read_treebank(HE.encode())", TypeError, "wrap text in io.StringIO"),
    ("read_treebank('no/*.mrg')", FileNotFoundError, "no file matches 'no/"),
    ("PARSER.predict([b'he worked'])", TypeError, "item 0 is a bytes"),
    ("PARSER.predict([WORDS, None])", TypeError, "item 1 is a NoneType"),
    ("PARSER.predict([['he', 5]])", TypeError, "item 0.*list of str.*got 5 in it"),
    ("PARSER.predict(pd.DataFrame({'a': ['he']}))", TypeError, "pass the column that"),
    ("PARSER.predict(['(he) worked'])", ValueError, "as a list of tokens"),
    ("PARSER.parse_kbest([WORDS], k=2.5)", ValueError, "whole number from 1 on"),
    ("PARSER.score_samples([WORDS])", ValueError, "row 0 is a sentence without a tree"),
    ("PARSER.score(TREES[:3], sample_weight=[1])", ValueError, "each of the 3 trees"),
    ("PARSER.sample(-1)", ValueError, "n must be a whole number from 0 on"),
    ("PARSER.set_params(learner__smooth=1)", ValueError, "'smooth'.*'smoothing'"),
    ("PARSER.to_nltk_parser().grammar()", NotImplementedError, "not one of NLTK"),
    ("PCFG().fit(TREES)", ValueError, r"use make_parser\(PCFG\(\)\)"),
    ("make_parser().fit([])", ValueError, "at least one tree"),
    ("make_ensemble('tiny')", ValueError, "'fast', 'accurate' or 'best'"),
    ("VotingParser([PARSER]).fit(TREES)", TypeError, r"pairs \(name, parser\)"),
    ("WTA.from_pcfg(PARSER)", TypeError, r"parser\[-1\]"),
    ("TREES['a']", IndexError, "indexed by an int, a slice"),
    ("TREES[[True] * 3]", IndexError, "length 3 for 120 rows"),
    ("TREES[[0.5]]", IndexError, "got list of float"),
    ("Treebank(['()'])", ValueError, "empty brackets"),
    ("Treebank(['(S a) (S b)'])", ValueError, "expected one tree per string"),
    ("Tree('S', [])", ValueError, "every node covers a word"),
    ("Tree.from_string('he worked')", ValueError, "text outside of brackets"),
    ("parseval(TREES, TREES[:5])", ValueError, "120 trees and predicted has 5"),
    ("f1_score('gold.mrg', 'test.mrg')", TypeError, "read_treebank for a file"),
    ("compare([PARSER], TREES)", TypeError, "a dict of parsers by name"),
    ("results_table(PARSER)", TypeError, "expected a fitted search"),
    ("report(PARSER, TREES, 'no/page.html')", FileNotFoundError, "there is no folder"),
    ("lpcfg_sk.save(TREES, 'file')", TypeError, "save takes an estimator"),
    ("make_parser().parse_report_", AttributeError, "the last predict, and there was"),
    ("Tree('NP', 'he')", TypeError, r"got one str under 'NP'; write \['he'\]"),
    ("report(TREES, PARSER, 'page')", TypeError, "got an estimator; are the arg"),
    ("report(PARSER.predict(TREES), TREES, 'page')", TypeError, "a fitted parser"),
    ("PARSER.predict(np.array([WORDS]))", TypeError, r"shape \(1, 4\); X.tolist\(\)"),
    ("PARSER.predict([WORDS, np.nan])", TypeError, r"item 1 is a float \(nan\)"),
    ("strict('ignore').predict([WORDS])", ValueError, "'on_failure' parameter"),
    ("strict('flat', '2G').predict([WORDS])", ValueError, "'max_memory' parameter"),
    ("make_parser(PARSER)", TypeError, "preprocessing of its own"),
    ("make_parser(EMLPCFG(lambda a: 2)).fit(TREES)", TypeError, r"m\(nonterminal, co"),
    ("VotingParser([('a', LogisticRegression())]).fit(TREES)", TypeError, "no parser"),
    ("cross_val_score(PARSER, TREES, scoring='parseval')", ValueError, "'scoring' par"),
    ("TREES[120]", IndexError, "row 120 of a treebank with 120 rows"),
    (
        "clone(SEARCH).set_params(param_grid={'m': [1]}).fit(TREES)",
        ValueError,
        "parameter 'm'",
    ),
    ("parseval([HE], [HE], params='no.prm')", FileNotFoundError, "no parameter file"),
    ("lpcfg_sk.load('missing')", FileNotFoundError, "missing"),
    ("read_treebank('missing.mrg')", FileNotFoundError, "missing.mrg"),
    ("Tree.from_string('(S')", ValueError, "never closed"),
    ("CFG.from_string('S => a')", ValueError, "line 1: expected 'A -> ...'"),
    ("KneserNeyLM().fit(TREES)", TypeError, r"treebank.sentences\(\)"),
]

#: Commands, their exit status, and the one line that they write to standard error.
COMMANDS = [
    ("parse {model} --kbest 2 {text}", 0, ""),
    ("parse {model} --nope", 2, "parse: unrecognized arguments: --nope; see"),
    ("parse {text} {model}", 1, "text is not a readable lpcfg_sk file"),
    ("parse {model} {trees}", 0, "parsing the sentences of 1 trees"),
    ("train {text} -o new", 1, r"text, line 1, column 1.*expected '\('"),
    ("train {trees} -o no/new", 2, "there is no folder 'no'; see"),
    ("train {trees} -o new -m four", 2, "'four' is not a whole number from 1 on"),
    ("parse {model} {text} --max-memory 0.5GB", 0, ""),
    ("parse {model} {text} --max-memory much", 2, "'much' is no number of bytes"),
    ("parse {model} {text} {trees}", 0, "parsing the sentences of 1 trees"),
    ("evaluate - -", 1, "only one of the two sides can come from stdin"),
    ("convert {trees} --to conll", 2, "choose from 'ptb'"),
    ("", 2, "required: COMMAND; see lpcfg-sk --help"),
    ("parse {model} missing", 1, "missing: No such file or directory"),
    ("convert {trees} --to sentences", 0, ""),
    ("convert {text}", 1, "text outside of brackets"),
    ("minimize {model} --max-states 3", 1, "go on with --max-states 37"),
    ("report {model} {trees} -o no/page", 2, "there is no folder 'no'"),
    ("inspect {model} --label QQ", 1, "no nonterminal 'QQ'"),
    ("select {trees} --learner pcfg", 1, "has no latent states"),
    ("train {trees} -o new --learner self-training", 1, "add --raw FILE"),
    ("lm train {trees} -o {text}", 0, "taking the sentences of 1 trees"),
]


def status(parser, X):
    return parser.predict(X, return_status=True)[1]["status"].tolist()


def reported(X):
    PARSER.predict(X)
    return PARSER.parse_report_["status"].tolist()


def warned(line):
    """Number of warnings that a line issues, all of them from this line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(compile(line, "<shell>", "eval"), globals())
    assert {warning.filename for warning in caught} <= {"<shell>"}
    return len(caught)


def strict(on_failure, max_memory=2**31):
    """A copy of the parser that treats failures in another way."""
    parser = copy.deepcopy(PARSER)
    return parser.set_params(
        learner__on_failure=on_failure, learner__max_memory=max_memory
    )


@pytest.fixture
def names(tmp_path):
    def saved(parser):
        lpcfg_sk.save(parser, tmp_path / "model")
        return lpcfg_sk.load(tmp_path / "model")

    def reopened(trees):
        Treebank(trees).write(tmp_path / "trees.mrg")
        read_treebank(tmp_path / "trees.mrg").save(tmp_path / "trees.tb")
        return Treebank.open(tmp_path / "trees.tb")

    def shards(trees):
        reopened(trees)
        return ShardedTreebank([tmp_path / "trees.tb", tmp_path / "trees.mrg"])

    others = (Pipeline, LogisticRegression, clone, status, strict, make_scorer)
    others += (cross_val_predict, cross_val_score, compare, report, results_table)
    others += (f1_score, label_report, parseval, parseval_scorer, parseval_summary)
    others += (train_test_split,)
    own = (saved, reopened, shards, reported, warned)
    return {
        **{name: getattr(lpcfg_sk, name) for name in lpcfg_sk.__all__},
        **{function.__name__: function for function in (*others, *own, tokenize)},
        **{"copy": copy, "lpcfg_sk": lpcfg_sk, "nltk": nltk, "np": np, "pd": pd},
        **{"io": io, "QUOTES": QUOTES, "SEARCH": SEARCH},
        **{"HE": HE, "LONG": LONG, "PARSER": PARSER, "TREES": TREES, "WORDS": WORDS},
        **{"pickle": pickle, "tree": TREES[0]},
    }


@pytest.mark.parametrize(("line", "expected"), ANSWERS, ids=[a for a, _ in ANSWERS])
def test_answers(line, expected, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParseFailureWarning)
        value = eval(line, names)
    assert value == expected


@pytest.mark.parametrize(
    ("line", "error", "message"), ERRORS, ids=[e[0] for e in ERRORS]
)
def test_errors(line, error, message, names):
    with pytest.raises(error, match=message):
        eval(line, names)


@pytest.mark.parametrize(
    ("command", "status", "message"), COMMANDS, ids=[c[0] for c in COMMANDS]
)
def test_commands(command, status, message, tmp_path, capfd):
    files = {name: str(tmp_path / name) for name in ("model", "text", "trees")}
    lpcfg_sk.save(PARSER, files["model"])
    (tmp_path / "text").write_text("he worked again .\n")
    (tmp_path / "trees").write_text(f"{HE}\n")
    assert main(command.format(**files).split()) == status
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == bool(message)
    assert re.search(message, "".join(lines))
