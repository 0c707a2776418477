"""Posterior probabilities of brackets as a picture, and differences of two trees."""

from html import escape

import numpy as np

from lpcfg_sk.inspection._displays import Display, learner_and_input
from lpcfg_sk.treebank import Treebank

_ANSI = {"right": "\033[32m", "wrong": "\033[31m", "missed": "\033[33m"}
_HTML = {"right": "#1a7f37", "wrong": "#cf222e", "missed": "#9a6700"}


class ChartDisplay(Display):
    """Posterior probabilities of the brackets of one sentence as a triangle.

    Parameters
    ----------
    words : list of str
        The sentence.
    marginals : DataFrame
        Columns label, start, end, marginal, as ``span_marginals`` gives them.
    label : str, default=None
        Show only this label; the most probable label of each span where None.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The heat map; row i, column j is the span from word i to word j.

    Examples
    --------
    >>> import pandas as pd
    >>> from lpcfg_sk.inspection import ChartDisplay
    >>> marginals = pd.DataFrame(
    ...     {"label": ["S"], "start": [0], "end": [2], "marginal": [1.0]}
    ... )
    >>> display = ChartDisplay(["dogs", "bark"], marginals)
    >>> display.plot().image_.get_array().shape
    (2, 2)
    """

    def __init__(self, words, marginals, label=None):
        self.words = list(words)
        self.marginals = marginals
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, sentence, *, label=None, ax=None, **kwargs):
        """Parse a sentence and draw its posteriors.

        Parameters
        ----------
        estimator : learner or pipeline that ends in one
            A fitted parser.
        sentence : list of str, str or Tree
            The words, with white space between them in a string.
        label : str, default=None
            Show only this label.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : ChartDisplay
        """
        if isinstance(sentence, list) and len(sentence) == 1:
            # A list of one sentence, as `predict` takes it.
            sentence = sentence[0]
        words = Treebank([sentence]).sentences()[0]
        learner, X = learner_and_input(estimator, [words])
        return cls(words, learner.span_marginals(X)[0], label).plot(ax, **kwargs)

    def plot(self, ax=None, *, cmap="Blues", threshold=0.3):
        """Draw the triangle.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure where None.
        cmap : str, default="Blues"
            Colours.
        threshold : float, default=0.3
            Spans with at least this posterior are labelled.

        Returns
        -------
        display : ChartDisplay
        """
        n = len(self.words)
        side = min(12.0, max(4.0, 0.42 * n + 1.5))
        ax = self._axes(ax, figsize=(side + 1, side))
        frame = self.marginals
        if self.label is not None:
            frame = frame[frame["label"] == self.label]
        best = frame.sort_values("marginal", kind="stable").drop_duplicates(
            ["start", "end"], keep="last"
        )
        heat = np.full((n, n), np.nan)
        heat[np.triu_indices(n)] = 0.0
        heat[best["start"], best["end"] - 1] = best["marginal"]
        self.image_ = ax.imshow(heat, cmap=cmap, vmin=0, vmax=1)
        for row in best[best["marginal"] >= threshold].itertuples():
            colour = "white" if row.marginal > 0.6 else "black"
            place = (row.end - 1, row.start)
            ax.text(
                *place, row.label, ha="center", va="center", color=colour, fontsize=7
            )
        # The triangle fills the upper right, so the words are on top.
        ax.set_xticks(range(n), self.words, rotation=90)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_yticks(range(n), self.words)
        ax.set(xlabel="last word of the span", ylabel="first word of the span")
        ax.spines[["left", "bottom"]].set_visible(False)
        bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
        bar.set_label("posterior probability")
        return self


def tree_diff(gold, predicted, *, format="text"):
    """Brackets of a predicted tree that are right, wrong and missed.

    Parameters
    ----------
    gold, predicted : Tree
        Two trees over the same words.
    format : {"text", "ansi", "html"}, default="text"
        "text" marks wrong brackets with ``-`` and missed ones with ``+``; "ansi" and
        "html" colour right, wrong and missed ones.

    Returns
    -------
    diff : str
        A summary, then one line per bracket that differs.

    Examples
    --------
    >>> from lpcfg_sk import Tree
    >>> from lpcfg_sk.inspection import tree_diff
    >>> gold = Tree.from_string("(S (NP (N dogs)) (VP (V see) (NP (N cats))))")
    >>> predicted = Tree.from_string("(S (NP (N dogs)) (V see) (NP (N cats)))")
    >>> print(tree_diff(gold, predicted))
    3 right, 0 wrong, 1 missed
    + VP: see cats
    """
    if format not in ("text", "ansi", "html"):
        raise ValueError(f"format is 'text', 'ansi' or 'html', got {format!r}")
    words = gold.words()
    if words != predicted.words():
        raise ValueError("the trees have different words")
    missed, brackets = _brackets(gold), _brackets(predicted)
    wrong = []
    for bracket in brackets:
        if bracket in missed:
            missed.remove(bracket)
        else:
            wrong.append(bracket)
    right = len(brackets) - len(wrong)
    lines = [("right", f"{right} right, {len(wrong)} wrong, {len(missed)} missed")]
    marked = [("wrong", "-", b) for b in wrong] + [("missed", "+", b) for b in missed]
    for kind, mark, (label, begin, end) in sorted(marked, key=lambda x: x[2][1:]):
        lines.append((kind, f"{mark} {label}: {' '.join(words[begin:end])}"))
    if format == "text":
        return "\n".join(text for _, text in lines)
    if format == "ansi":
        return "\n".join(f"{_ANSI[kind]}{text}\033[0m" for kind, text in lines)
    spans = (
        f'<span style="color:{_HTML[kind]}">{escape(text)}</span>'
        for kind, text in lines
    )
    return f"<pre>{'<br>'.join(spans)}</pre>"


def _brackets(tree):
    treebank = Treebank([tree])
    inner = (treebank.size > 1) & (treebank.label >= 0)
    columns = (treebank.label, treebank.start, treebank.stop)
    brackets = zip(*(column[inner].tolist() for column in columns), strict=True)
    return [(treebank.labels[label], *span) for label, *span in brackets]
