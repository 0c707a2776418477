"""A small English with real latent structure, and the compiler of its grammar."""

import re
from functools import lru_cache
from importlib.resources import files
from itertools import product
from numbers import Integral

import numpy as np

from lpcfg_sk._validation import Interval, StrOptions, validate_params
from lpcfg_sk.lpcfg import LPCFG
from lpcfg_sk.treebank import escape_label, unbinarize

# Variables: c is the class of a noun; n, m and k are numbers.
_DOMAINS = {
    "c": {"person": 0.4, "thing": 0.35, "text": 0.25},
    "n": {"sg": 0.6, "pl": 0.4},
    "m": {"sg": 0.6, "pl": 0.4},
    "k": {"sg": 0.6, "pl": 0.4},
}

# Verb forms: tag, number of the subject, and the adverbials of time that go with it.
_FORMS = (("VBZ", "sg", "now"), ("VBP", "pl", "now"), ("VBD", "n", "past"))

_SEED = 20140601
_SUBSETS = {"train": (0.0, 0.8), "test": (0.8, 1.0), "all": (0.0, 1.0)}
_SYMBOL = re.compile(r"([^\s\[\]]+?)(?:\[([^\]]*)\])?\s+")


@lru_cache(maxsize=1)
def toy_grammar():
    """The L-PCFG of :func:`load_toy`.

    Returns
    -------
    grammar : LPCFG
    """
    text = files("lpcfg_sk.datasets").joinpath("toy_grammar.txt").read_text("utf-8")
    sections = []
    for section in text.split("\n\n"):
        # A section with placeholders is repeated for each form of the verb.
        for tag, number, time in _FORMS if "#[" in section else _FORMS[:1]:
            rules = section.replace("#[", f"{tag}[").replace("#]", f"{number}]")
            sections.append(rules.replace("%", time))
    return compile_templates(
        "\n".join(sections), domains=_DOMAINS, root=("S", ("main",))
    )


@validate_params(
    {
        "n": [Interval(Integral, 1, None, closed="left")],
        "subset": [StrOptions(set(_SUBSETS))],
        "return_grammar": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_toy(n=3000, *, subset="all", return_grammar=False):
    """Load a treebank of a small English with latent structure.

    The trees are drawn from a hand-written L-PCFG and are always the same. Their
    labels are those of the Penn Treebank; what determines the structure is not
    visible in them: subjects agree with verbs and relative clauses with nouns,
    verbs choose their complements, prepositional phrases attach by preposition,
    definiteness and the classes of verbs and nouns, adverbials of time agree with
    the tense of their verb, and conjuncts are of one class.

    Parameters
    ----------
    n : int, default=3000
        Number of trees; a smaller treebank is the beginning of a larger one.
    subset : {"all", "train", "test"}, default="all"
        All of them, the first four fifths, or the rest.
    return_grammar : bool, default=False
        Whether to return the grammar as well.

    Returns
    -------
    treebank : Treebank
        Trees, not binarised.
    grammar : LPCFG
        The grammar that the trees were drawn from, over the labels of
        ``TreeBinarizer().fit_transform(treebank)``. Only with `return_grammar`.

    Notes
    -----
    On the test part a plain PCFG has an F1 near 83, the true grammar near 96.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_toy
    >>> treebank = load_toy()
    >>> len(treebank)
    3000
    >>> len(load_toy(subset="train")), len(load_toy(subset="test"))
    (2400, 600)
    """
    grammar = toy_grammar()
    first, last = (round(share * n) for share in _SUBSETS[subset])
    treebank = unbinarize(grammar.sample(n, random_state=_SEED)[first:last])
    return (treebank, grammar) if return_grammar else treebank


def compile_templates(text, *, domains, root):
    """Compile a grammar whose symbols carry features.

    Parameters
    ----------
    text : str
        One rule per line: ``NP[c,sg] -> DT[sg] NN[c] : 5``, where ``:`` precedes the
        weight, or ``NN[person] = man woman`` for words, whose weights fall with
        their rank. A feature is a constant, or a variable that has the same value
        wherever it stands in a rule. Right-hand sides have any length; unary rules
        must not form a cycle. Lines that begin with ``# `` are comments.
    domains : dict of str to dict of str to float
        Values and their probabilities of each variable. They count for variables
        that the left-hand side lacks.
    root : tuple
        Label and features of the start symbol.

    Returns
    -------
    grammar : LPCFG
        Over the labels that :class:`TreeBinarizer` gives by default. The latent
        states of a label are its features; those of an intermediate node are the
        children still to come.
    """
    return _Compiler(text, domains).compile(*root)


class _Compiler:
    def __init__(self, text, domains):
        self.domains = domains
        self.rules = {}  # (label, features) -> list of (weight, children)
        self.words = {}  # (label, features) -> list of words
        for line in map(str.strip, text.splitlines()):
            if line and not line.startswith("# "):
                self._read(line)
        self.realizations = {}
        self.states = {}  # name -> {key of a state: number}
        self.pending = []

    def _read(self, line):
        left, kind, right = re.split(r"\s+(->|=)\s+", line, maxsplit=1)
        ((label, terms),) = _symbols(left)
        if kind == "=":
            for features, _, _ in self._bindings(terms, ()):
                self.words.setdefault((label, features), []).extend(right.split())
            return
        right, weight = right.rsplit(" : ", 1)
        children = _symbols(right)
        for features, _, rest in self._bindings(terms, children):
            self.rules.setdefault((label, features), []).append((float(weight), rest))

    def _bindings(self, terms, others):
        """All ways to bind the variables of some terms.

        Yields the features, the probability, and the other symbols with the same
        variables bound.
        """
        free = list(dict.fromkeys(t for t in terms if t in self.domains))
        for values in product(*(self.domains[v].items() for v in free)):
            bound = {v: value for v, (value, _) in zip(free, values, strict=True)}
            yield (
                tuple(bound.get(t, t) for t in terms),
                float(np.prod([p for _, p in values])),
                tuple((a, tuple(bound.get(t, t) for t in ts)) for a, ts in others),
            )

    def _realize(self, label, features):
        """Chains of labels that a symbol becomes: {(name, state): probability}."""
        symbol = (label, features)
        if symbol not in self.realizations:
            name = escape_label(label)
            if symbol in self.words:
                made = {(name, symbol): 1.0}
            else:
                made = {}
                total = sum(weight for weight, _ in self.rules[symbol])
                for weight, children in self.rules[symbol]:
                    if len(children) > 1:
                        key = (name, symbol)
                        made[key] = made.get(key, 0.0) + weight / total
                        continue
                    for child, share in self._choices(children[0]):
                        key = (f"{name}+{child[0]}", child[1])
                        made[key] = made.get(key, 0.0) + weight / total * share
            self.realizations[symbol] = made
        return self.realizations[symbol]

    def _choices(self, symbol):
        """Possible values of a child with free variables."""
        for features, p, _ in self._bindings(symbol[1], ()):
            for made, share in self._realize(symbol[0], features).items():
                yield made, p * share

    def _splits(self, owner, children):
        """Binary splits: (left, right, probability)."""
        (label, terms), *others = children
        for features, p, rest in self._bindings(terms, others):
            if len(rest) == 1:
                rights = list(self._choices(rest[0]))
            else:
                rights = [(("@" + escape_label(owner), (owner, rest)), 1.0)]
            for left, share in self._realize(label, features).items():
                for right, q in rights:
                    yield left, right, p * share * q

    def _number(self, made):
        name, state = made
        numbers = self.states.setdefault(name, {})
        if state not in numbers:
            numbers[state] = len(numbers)
            self.pending.append((name, state))
        return numbers[state]

    def compile(self, label, features):
        roots = [
            (name, self._number((name, state)), p)
            for (name, state), p in self._realize(label, features).items()
        ]
        binary, lexical = {}, {}
        while self.pending:
            name, state = self.pending.pop()
            h = self.states[name][state]
            if state in self.words:
                for x, p in _zipf(self.words[state]):
                    lexical.setdefault((name, x), []).append((h, p))
                continue
            for left, right, p in self._rewrites(name, state):
                i, j = self._number(left), self._number(right)
                rule = (name, left[0], right[0])
                binary.setdefault(rule, []).append(((h, i, j), p))
        m = {name: len(numbers) for name, numbers in self.states.items()}
        return LPCFG.from_parameters(
            binary={r: _dense([m[x] for x in r], es) for r, es in binary.items()},
            lexical={r: _dense([m[r[0]]], es) for r, es in lexical.items()},
            root={
                a: _dense([m[a]], [(h, p) for b, h, p in roots if a == b])
                for a, _, _ in roots
            },
        )

    def _rewrites(self, name, state):
        if name.startswith("@"):
            yield from self._splits(*state)
            return
        rules = [rule for rule in self.rules[state] if len(rule[1]) > 1]
        total = sum(weight for weight, _ in rules)
        for weight, children in rules:
            for left, right, p in self._splits(state[0], children):
                yield left, right, p * weight / total


def _symbols(text):
    return tuple(
        (label, tuple(terms.split(",")) if terms else ())
        for label, terms in _SYMBOL.findall(text + " ")
    )


def _zipf(words):
    weights = 1.0 / np.arange(2, len(words) + 2)
    return zip(words, (weights / weights.sum()).tolist(), strict=True)


def _dense(shape, entries):
    array = np.zeros(shape)
    for place, value in entries:
        array[place] += value
    return array
