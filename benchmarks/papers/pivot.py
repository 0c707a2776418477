"""Paper 001: a provably correct learning algorithm for latent-variable PCFGs."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd

from lpcfg_sk import EMLPCFG, PivotLPCFG, SpectralLPCFG, Treebank, make_parser
from lpcfg_sk.datasets import make_lpcfg, make_treebank
from lpcfg_sk.language_model import AggregateMarkovLM, KneserNeyLM
from lpcfg_sk.pivot import pivot_decomposition
from papers._registry import (
    cpu,
    curves,
    draw_rows_of,
    label_states,
    progress,
    replicates,
)
from papers.spectral import LITERAL as LITERAL_SPECTRAL
from papers.spectral import all_trees, described, falls_as_root, values

STATES = (8, 16, 24, 32)
F1 = {
    "EM": (86.69, 88.32, 88.35, 88.56),
    "spectral": (85.60, 87.77, 88.53, 88.82),
    "pivot": (83.56, 86.00, 86.87, 86.40),
    "pivot+EM": (86.83, 88.14, 88.64, 88.55),
}
F1_ITERATIONS = {"EM": (40, 30, 30, 20), "pivot+EM": (2, 6, 2, 2)}
#: Matsuzaki, Miyao and Tsujii's EM: relative frequencies times random numbers, nothing
#: shared between states, iterations by likelihood on held-out trees.
MATSUZAKI = {"smoothing": 0.0}
#: Figure 1 with the sums of section 6.2, whose maximisation the paper runs to its end.
LITERAL = {"objective": "sum", "smoothing": 0.0}


def parsers(m, most):
    """Learners of table 1; the concave maximisation takes `most` steps."""
    held_out = {"random_state": 0}
    return {
        "EM": EMLPCFG(m, **held_out),
        "EM, no smoothing": EMLPCFG(m, **MATSUZAKI, **held_out),
        "spectral": SpectralLPCFG(m),
        "pivot": PivotLPCFG(m),
        "pivot, concave step to its end": PivotLPCFG(m, max_iter=most, **LITERAL),
        "pivot+EM": EMLPCFG(init=PivotLPCFG(m), max_iter=20, **held_out),
        "pivot+1 EM": EMLPCFG(
            init=PivotLPCFG(m), max_iter=1, tol=None, validation_fraction=None
        ),
    }


def of_paper(table, name, m):
    name = name.split(",")[0]
    column = STATES.index(m) if m in STATES else None
    return np.nan if column is None or name not in table else table[name][column]


def draw_f1(table, figure):
    ax = figure.subplots()
    for name, rows in table.groupby("learner", sort=False):
        (line,) = ax.plot(rows["m"], rows["ours"], marker="o", label=name)
        if "," not in name:
            ax.plot(rows["m"], rows["paper"], "x:", color=line.get_color())
    label_states(ax, table["m"])
    ax.set_ylabel("F1 (crosses: the paper)")
    figure.legend(loc="outside right upper", fontsize="small")


def _f1_of(table, name):
    return table.loc[table["learner"] == name, "ours"].max()


@replicates(
    "001-table1",
    "Table 1: F1 of EM, spectral, pivot and pivot+EM",
    claim="pivot+EM is at least as good as pivot, up to a point",
    holds=lambda table: _f1_of(table, "pivot+EM") > _f1_of(table, "pivot") - 1,
    draw=draw_f1,
)
def table1(setting):
    """Labelled F1 without the root, all lengths."""
    train, test, where = setting.trees()
    features = make_parser(PivotLPCFG(), horizontal=1)[:-1]
    X = features.fit_transform(train)
    sentences = features[:2].transform(test)
    sizes = setting.pick([2], [8, 16], [8, 16, 24, 32])
    most, rows = setting.pick(20, 60, 500), []
    todo = [(m, *item) for m in sizes for item in parsers(m, most).items()]
    for m, name, learner in progress(todo, "learners"):
        _, seconds = cpu(learner.fit, X)
        rows.append(
            {
                "m": m,
                "learner": name,
                "paper": of_paper(F1, name, m),
                "ours": 100 * learner.score(sentences, test),
                "paper iterations": of_paper(F1_ITERATIONS, name, m),
                "iterations": getattr(learner, "n_iter_", np.nan),
                "CPU s": seconds,
            }
        )
    return pd.DataFrame(rows).assign(
        differs=f"{where} in place of 39,832 trees; EM's iterations by held-out trees, "
        f"those of pivot alone are concave steps, {most} at most"
    )


ORDERS = (2, 4, 8, 16, 32, 128, 256)
PERPLEXITY = {
    "EM": (737, 599, 488, 468, 430, 388, 365),
    "pivot": (852, 718, 605, 559, 537, 426, 597),
    "pivot+EM": (758, 582, 502, 425, 374, 310, 327),
}
EM_ITERATIONS = {"EM": (14, 14, 19, 12, 10, 9, 8), "pivot+EM": (2, 3, 2, 1, 1, 1, 1)}
KNESER_NEY = {2: 408, 3: 386}
#: Seconds at m=256, in Matlab.
SECONDS = {"EM": (np.nan,) * 6 + (107,), "pivot": (np.nan,) * 6 + (344,)}
MAXIMUM_LIKELIHOOD = {"prior": None, "unigram_weight": 1e-3}
#: Held-out data end EM long before this.
ENOUGH = {"max_iter": 500}
#: Section 8: the concave step to convergence, then as many EM iterations as in table 2.
LITERAL_PIVOT = {
    "init": "pivot",
    "pivot_max_iter": 200,
    "validation_fraction": None,
    **MAXIMUM_LIKELIHOOD,
}
MODELS = {
    "EM": {"init": "random", **ENOUGH, **MAXIMUM_LIKELIHOOD},
    "EM, priors": {"init": "random", **ENOUGH},
    "pivot": {"init": "pivot", "max_iter": 0, **MAXIMUM_LIKELIHOOD},
    "pivot, literal": {"max_iter": 0, **LITERAL_PIVOT},
    "pivot+EM": {"init": "pivot", **ENOUGH, **MAXIMUM_LIKELIHOOD},
    "pivot+EM, literal": {"max_iter": "as the paper", **LITERAL_PIVOT},
    "pivot+1 EM": {"max_iter": 1, **LITERAL_PIVOT, "pivot_max_iter": 5},
    "pivot+EM, priors": {"init": "pivot", **ENOUGH},
}
DIFFERS = {
    "EM": "NLTK's edition of Brown has 24,537 types",
    "pivot": "events of probability 0 are mixed with the unigram, not skipped",
    "pivot+EM": "as pivot; held-out text may choose 0 iterations, not the paper's 1",
    "pivot, literal": "until concave steps gain nothing (tol), which overfits",
    "pivot+EM, literal": "the paper's iterations after pivot, literal",
    "pivot+1 EM": "5 concave steps and exactly one EM iteration",
}


#: The New York Times: the same, and the vocabulary of words seen 20 times.
NYT_PERPLEXITY = {
    "EM": (926, 733, 562, 420, 361, 284, 265),
    "pivot": (1227, 1264, 896, 717, 738, 782, 886),
    "pivot+EM": (898, 754, 553, 441, 394, 279, 292),
}
NYT_ITERATIONS = {
    "EM": (36, 39, 42, 33, 38, 35, 32),
    "pivot+EM": (20, 14, 13, 15, 10, 19, 12),
}
NYT_KNESER_NEY = {2: 271, 3: 150}
NYT_SECONDS = {"EM": (np.nan,) * 6 + (46_620,), "pivot": (np.nan,) * 6 + (6600,)}


def fit_language_model(model, train, first):
    if isinstance(model, KneserNeyLM) or model.validation_fraction is None:
        return model.fit(train)
    return model.fit(train, X_val=first)


def draw_perplexity(table, figure):
    ax = figure.subplots()
    for name, rows in table.dropna(subset=["m"]).groupby("model", sort=False):
        (line,) = ax.plot(rows["m"], rows["ours"], marker="o", label=name)
        ax.plot(rows["m"], rows["paper"], "x:", color=line.get_color())
    label_states(ax, table["m"].dropna())
    ax.set(ylabel="perplexity (crosses: the paper)", yscale="log")
    ax.yaxis.set_major_formatter("{x:.0f}")
    ax.yaxis.set_minor_formatter("{x:.0f}")
    figure.legend(loc="outside right upper", fontsize="small")


def _pivot_saves_iterations(table):
    rows = table.dropna(subset=["m"]).pivot(index="m", columns="model")
    iterations, perplexity = rows["EM iterations"], rows["ours"]
    better = perplexity["pivot+EM"] < perplexity["EM"]
    return (iterations["pivot+EM"] < iterations["EM"]).all() and better.mean() > 0.5


@replicates(
    "001-table2",
    "Table 2: perplexity of the Saul and Pereira model on Brown",
    claim="pivot+EM takes fewer iterations than EM, and wins at most m (5 of 7 there)",
    holds=_pivot_saves_iterations,
    draw=draw_perplexity,
)
def table2(setting):
    """Second half of dev, unknown outcomes skipped, one stream of tokens."""
    papers = PERPLEXITY, EM_ITERATIONS, KNESER_NEY, SECONDS
    return perplexities(setting, setting.brown(), papers)


@replicates(
    "001-table2-nyt",
    "Table 2: perplexity of the Saul and Pereira model on the New York Times",
    claim="pivot+EM takes fewer iterations than EM, and wins at most m (5 of 7 there)",
    holds=_pivot_saves_iterations,
    draw=draw_perplexity,
)
def table2_nyt(setting):
    """The same with Gigaword, which the user must have."""
    papers = NYT_PERPLEXITY, NYT_ITERATIONS, NYT_KNESER_NEY, NYT_SECONDS
    parts = setting.new_york_times()
    return perplexities(setting, parts, papers, min_count=setting.pick(2, 20, 20))


def perplexities(setting, parts, papers, min_count=2):
    """Table 2 of one corpus, beside the figures of the paper."""
    train, first, second = parts
    perplexity, iterations, kneser_ney, seconds_of_paper = papers
    sizes = setting.pick([2], [2, 16, 128], list(ORDERS))
    rows = []
    todo = [(m, *item) for m in sizes for item in MODELS.items()]
    for m, name, options in progress(todo, "models"):
        literal, paper_iterations = {}, _at(iterations, name, m)
        if options["max_iter"] == "as the paper":
            literal["max_iter"] = int(paper_iterations)
        model = AggregateMarkovLM(
            m, min_count=min_count, random_state=0, **{**options, **literal}
        )
        model, seconds = cpu(fit_language_model, model, train, first)
        rows.append(
            {
                "model": name,
                "m": m,
                "paper": _at(perplexity, name, m),
                "ours": model.perplexity(second),
                "paper iterations": paper_iterations,
                "EM iterations": model.n_iter_,
                "concave steps": model.n_pivot_iter_,
                "zero events": model.event_report(second).n_zero,
                "paper s": _at(seconds_of_paper, name, m),
                "CPU s": seconds,
                "differs": DIFFERS.get(name, "priors are not in the paper"),
            }
        )
    for order, paper in kneser_ney.items():
        model, seconds = cpu(KneserNeyLM(order, min_count=1).fit, train)
        row = {"model": f"Kneser-Ney {order}-gram", "paper": paper, "CPU s": seconds}
        row |= {"ours": model.perplexity(second), "differs": "singletons are words"}
        rows.append(row)
    return pd.DataFrame(rows)


@replicates(
    "001-brown",
    "Section 8: sizes of the Brown corpus",
    claim="tokens and words are those of the paper, up to one percent",
    holds=lambda t: (abs(t["ours"] - t["paper"]) <= 0.01 * t["paper"]).all(),
    draw=draw_rows_of("number"),
)
def brown_sizes(setting):
    """Tokens of train and dev, words seen more than once."""
    train, first, second = setting.brown()
    counts = Counter(word for sentence in train for word in sentence)
    ours = {
        "tokens of train": (800_000, counts.total()),
        "tokens of dev": (200_000, sum(map(len, [*first, *second]))),
        "words": (24_488, sum(n > 1 for n in counts.values())),
    }
    table = pd.DataFrame(
        [{"of": of, "paper": paper, "ours": n} for of, (paper, n) in ours.items()]
    )
    if setting.size == "tiny":
        return table.assign(paper=table["ours"], differs="toy sentences")
    return table.assign(differs="NLTK's edition; the test part is not looked at")


def _at(table, name, m):
    """Number of the paper for a model, whose literal form has the same."""
    name = name.removesuffix(", literal")
    return table[name][ORDERS.index(m)] if name in table and m in ORDERS else np.nan


@replicates(
    "001-time",
    "Section 8: time of the pivot method against EM by size of the text",
    claim="with more text the pivot method loses nothing to EM (20% for noise)",
    holds=lambda t: t["ours"].iloc[-1] < 1.2 * t["ours"].iloc[0],
    draw=curves("sentences", "EM s", "pivot s", yscale="log", ylabel="CPU seconds"),
)
def brown_time(setting):
    """By size of the text; the paper has 344 s against 107 s (8 iterations)."""
    train, _, _ = setting.brown()
    if setting.size == "tiny":
        # Time depends on the number of different bigrams, of which toys have few.
        words = np.random.default_rng(0).random((2000, 20)) ** 4 * 3000
        train = words.astype(int).astype(str).tolist()
    m = setting.pick(16, 64, 256)
    models = {
        "EM": {"init": "random", "max_iter": 8, "tol": 0.0},
        "pivot": {"init": "pivot", "max_iter": 0},
    }
    rows = []
    for share in progress((0, 8, 1), "sizes"):
        # The first round only compiles.
        part = train[: len(train) // share] if share else train[:200]
        seconds = {}
        for name, options in models.items():
            options = {**options, **MAXIMUM_LIKELIHOOD, "validation_fraction": None}
            model = AggregateMarkovLM(m if share else 2, random_state=0, **options)
            # The best of several, because other work disturbs short ones most.
            times = [cpu(model.fit, part)[1] for _ in range(setting.pick(6, 2, 2))]
            seconds[f"{name} s"] = min(times)
        row = {"m": m, "sentences": len(part), **seconds}
        rows.append(row | {"ours": seconds["pivot s"] / seconds["EM s"]})
    return pd.DataFrame(rows[1:]).assign(
        paper=[np.nan, 344 / 107],
        differs="pivot/EM; the paper's are of Matlab at m=256, and 0.14 (1 h 50 min "
        "against 12 h 57 min, 32 iterations) on Gigaword with 1,300 times the text",
    )


def _pivot_falls(table):
    pivot = table[table["learner"] == "pivot"]
    return all(falls_as_root(rows) for _, rows in pivot.groupby("grammar"))


@replicates(
    "001-theorem1",
    "Theorem 1: the pivot learner converges to the true grammar",
    claim="the error of the pivot learner falls about as M^(-1/2)",
    holds=_pivot_falls,
    draw=curves(
        "M",
        by=["learner", "grammar"],
        label="{}, grammar {}",
        xscale="log",
        yscale="log",
        xlabel="trees M",
        ylabel="Σ |p̂ − p|",
    ),
)
def theorem1(setting):
    """Σ |p̂(t) − p(t)| over all trees of two and three words, by number of trees."""
    sizes = setting.pick(
        [300, 3000], [10**3, 10**4, 10**5], [10**3, 10**4, 10**5, 10**6]
    )
    literal = {"smoothing": 0.0, "lexicon_alpha": 0.0, "prior": 0.0}
    learners = {
        "pivot": PivotLPCFG(2, objective="sum", max_iter=500, tol=1e-9, **literal),
        "spectral": SpectralLPCFG(2, **LITERAL_SPECTRAL),
    }
    rows, seeds = [], range(setting.pick(1, 3, 3))
    for seed, M in progress([*product(seeds, sizes)], "numbers of trees"):
        grammar = make_lpcfg(2, 2, 6, m=2, pivot=True, mean_length=4, random_state=seed)
        trees = Treebank([t for n in (2, 3) for t in all_trees(grammar, n)])
        p = values(grammar, trees)
        X = described(make_treebank(grammar, M, random_state=0))
        for name, learner in learners.items():
            learner.fit(X)
            error = np.abs(values(learner.grammar_, trees) - p).sum()
            rows.append({"learner": name, "grammar": seed, "M": M, "ours": error})
    return pd.DataFrame(rows).assign(paper=np.nan, differs="the paper has no figure")


@replicates(
    "001-theorem2",
    "Theorem 2: matrix decomposition problem 1 is solved exactly",
    claim="Q and π are found up to 1e-9",
    holds=lambda table: (table["ours"] <= 1e-9).all(),
    draw=draw_rows_of("largest error of Q and π", xscale="log"),
)
def theorem2(setting):
    """Random Q = Σ π(h) r(f | h) s(g | h), by figure 2 and by the remark on it."""
    rows = []
    for seed in progress(range(setting.pick(3, 10, 100)), "matrices"):
        rng = np.random.default_rng(seed)
        m, d = 4, 20
        factors = []
        for _ in range(2):
            factor = np.zeros((d, m))
            factor[np.arange(m), np.arange(m)] = 0.3  # the pivots
            factor[m:] = 0.7 * rng.dirichlet(np.ones(d - m), size=m).T
            factors.append(factor)
        r, s = factors
        pi = rng.dirichlet(np.full(m, 5.0))
        Q = (r * pi) @ s.T
        for columns in ("pivots", "likelihood"):
            found = pivot_decomposition(
                Q, m, columns=columns, tol=1e-14, max_iter=10_000
            )
            errors = [
                np.abs((found.r * found.pi) @ found.s.T - Q).max(),
                np.abs(np.sort(found.pi) - np.sort(pi)).max(),
            ]
            rows.append({"matrix": seed, "columns": columns, "ours": max(errors)})
    return pd.DataFrame(rows).assign(paper=0.0, differs="floating point")
