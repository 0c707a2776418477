"""Kneser-Ney language model."""

from numbers import Integral

import numpy as np

from lpcfg_sk._ragged import find_keys
from lpcfg_sk._validation import Interval, StrOptions, fit_context
from lpcfg_sk.language_model._base import BaseLanguageModel
from lpcfg_sk.language_model._counting import check_corpus, count_ngrams
from lpcfg_sk.treebank import check_sample_weight


class NGramTable:
    """The n-grams of one order: a table of histories, and discounted counts.

    The key of a history is made of the id of the history one word shorter and its
    oldest word, the key of an n-gram of the id of its history and its last word. Keys
    are sorted.
    """

    def __init__(self, history_keys, keys, proba, backoff, discounts, n_outcomes):
        self.history_keys = history_keys
        self.keys = keys
        self.outcome = keys % n_outcomes
        self.discounts = discounts
        self.proba = proba
        self.backoff = backoff
        history = keys // n_outcomes
        self.offsets = np.searchsorted(history, np.arange(len(history_keys) + 1))

    @classmethod
    def from_counts(cls, history_keys, keys, counts, n_outcomes, modified, cutoff=1):
        """Discount counts; those of n-grams below the cut-off go to the order below."""
        history = keys // n_outcomes
        discounts = _discounts(counts, modified)
        discount = discounts[np.minimum(counts, 3).astype(np.int64) - 1]
        kept = counts >= cutoff
        discount[~kept] = counts[~kept]
        total = np.bincount(history, weights=counts, minlength=len(history_keys))
        removed = np.bincount(history, weights=discount, minlength=len(history_keys))
        proba = (counts - discount) / total[history]
        # A history without n-grams leaves everything to the order below.
        backoff = np.ones(len(history_keys))
        np.divide(removed, total, out=backoff, where=total > 0)
        return cls(
            history_keys, keys[kept], proba[kept], backoff, discounts, n_outcomes
        )


def _discounts(counts, modified):
    """Discounts of counts 1, 2 and above; equal ones unless modified."""
    n1, n2, n3, n4 = (float((counts == k).sum()) for k in (1, 2, 3, 4))
    # Without n-grams seen once or twice the estimate is 0 or undefined.
    share = n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
    discounts = np.full(3, share)
    if modified and n1 and n2 and n3 and n4:
        discounts[0] = 1 - 2 * share * n2 / n1
        discounts[1] = 2 - 3 * share * n3 / n2
        discounts[2] = 3 - 4 * share * n4 / n3
        if (discounts <= 0).any() or (discounts > [1, 2, 3]).any():
            discounts[:] = share
    return discounts


class KneserNeyLM(BaseLanguageModel):
    r"""Interpolated Kneser-Ney n-gram model.

    .. math::
        p(w | u) = \frac{\max(c(uw) - D, 0)}{c(u \cdot)}
        + \frac{D\, N_{1+}(u \cdot)}{c(u \cdot)}\, p(w | u')

    where u' is u without its oldest word.  The highest order counts n-grams; lower
    ones count the distinct words seen before an n-gram, but n-grams that begin with a
    start symbol keep their counts; the lowest is mixed with the uniform distribution
    over all outcomes.  Distributions sum to 1 after every history.

    Parameters
    ----------
    order : int, default=2
        Length of the n-grams: 2 for bigrams, 3 for trigrams; up to 5.
    discount : {"kn", "modified"}, default="modified"
        One discount D = n1/(n1 + 2 n2) per order (Kneser and Ney, 1995), or three for
        counts 1, 2 and above (Chen and Goodman, 1999).
    mode : {"stream", "sentence"}, default="stream"
        "stream" runs the sentences together; "sentence" puts a start symbol before
        each and predicts its end.
    start_symbols : {"one", "full"}, default="one"
        How many start symbols there are before a sentence, in sentence mode: one, so
        that the first words have shorter histories, as in KenLM and SRILM, or as many
        as the order asks for. It has no effect for bigrams.
    min_count : int, default=2
        Words seen less often in training become the unknown word, which is then a
        word like the others.
    score_unk : bool, default=False
        Whether unknown words count as outcomes when scoring.  They always count as
        contexts.
    unk_token : str, default="<unk>"
        Name of the unknown word; tokens of that name are unknown words too.
    vocabulary : sequence of str, default=None
        The words of the model, whatever their counts; all others are unknown. None
        takes those of the text by `min_count`.
    cutoffs : sequence of int, default=None
        Least count of a bigram, a trigram and so on that is kept; in lower orders
        counts are those of the distinct words before it. The share of other n-grams
        goes to shorter histories. None keeps all.

    Attributes
    ----------
    vocabulary_ : ndarray of str
        Outcomes: the unknown word, in sentence mode the end symbol, then words by
        decreasing count.
    discounts_ : list of ndarray
        Discounts of each order, from unigrams up.

    See Also
    --------
    AggregateMarkovLM : A bigram model with latent states.

    References
    ----------
    Kneser, R. and Ney, H. (1995). Improved backing-off for m-gram language modeling.
    ICASSP.

    Chen, S. F. and Goodman, J. (1999). An empirical study of smoothing techniques for
    language modeling. Computer Speech and Language 13.

    Examples
    --------
    >>> from lpcfg_sk.language_model import KneserNeyLM
    >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
    >>> model = KneserNeyLM(order=3).fit(X)
    >>> bool(model.perplexity([["the", "cat", "purrs"]]) < 2.5)
    True
    """

    _parameter_constraints: dict = {
        **BaseLanguageModel._parameter_constraints,
        "order": [Interval(Integral, 1, 5, closed="both")],
        "discount": [StrOptions({"kn", "modified"})],
        "start_symbols": [StrOptions({"one", "full"})],
        "cutoffs": [None, "array-like"],
    }

    def __init__(
        self,
        order=2,
        *,
        discount="modified",
        mode="stream",
        start_symbols="one",
        min_count=2,
        score_unk=False,
        unk_token="<unk>",
        vocabulary=None,
        cutoffs=None,
    ):
        self.order = order
        self.discount = discount
        self.mode = mode
        self.start_symbols = start_symbols
        self.min_count = min_count
        self.score_unk = score_unk
        self.unk_token = unk_token
        self.vocabulary = vocabulary
        self.cutoffs = cutoffs

    @property
    def _order(self):
        return self.order

    @property
    def _n_starts(self):
        return 1 if self.start_symbols == "one" else self.order

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, sample_weight=None):
        """Count n-grams and estimate the discounts.

        Parameters
        ----------
        X : iterable of list of str
            Training sentences: a list, an iterator that is read once, or a
            :class:`SentenceFile`. Memory is that of the distinct n-grams.
        y : None
            Ignored.
        sample_weight : array-like of int, shape (n_sentences,), default=None
            How often each sentence was seen, which also counts for ``min_count``;
            discounts are defined for whole counts only. A sentence of weight 0 is left
            out. In stream mode the tokens of a repeated sentence follow those of the
            sentence before it, not of its own copy.

        Returns
        -------
        self
        """
        weights = None
        if sample_weight is not None:
            X = check_corpus(X, estimator=self)
            weights = check_sample_weight(sample_weight, X)
            if (weights != np.floor(weights)).any():
                raise ValueError(
                    "KneserNeyLM takes whole numbers as sample_weight: its discounts "
                    "come from the number of n-grams seen once and twice"
                )
        self._check_cutoffs()
        self._levels = self._count(*count_ngrams(self, X, weights))
        self.discounts_ = [level.discounts for level in self._levels]
        return self

    def _count(self, events, weights):
        """Levels from unigrams up."""
        n_outcomes = len(self.vocabulary_)
        # Outcomes and the start symbol can stand in a history.
        base = n_outcomes + 1
        seen = np.ones(len(weights), dtype=bool)
        history_keys = np.zeros(1, np.int64)
        history_id = np.zeros(len(weights), np.int64)
        tables = []
        for n in range(1, self.order + 1):
            if n > 1:
                word = events.history[:, n - 2]
                seen = (history_id >= 0) & (word >= 0)
                keys = history_id[seen] * base + word[seen]
                history_keys, inverse = np.unique(keys, return_inverse=True)
                history_id = np.full(len(history_id), -1)
                history_id[seen] = inverse
            keys, inverse = np.unique(
                history_id[seen] * n_outcomes + events.outcome[seen],
                return_inverse=True,
            )
            tables.append((history_keys, keys, np.bincount(inverse, weights[seen])))
        levels = []
        for n, (history_keys, keys, counts) in enumerate(tables, start=1):
            if n < self.order:
                longer_histories, longer_keys, _ = tables[n]
                shorter = longer_histories[longer_keys // n_outcomes] // base
                distinct = np.bincount(
                    find_keys(keys, shorter * n_outcomes + longer_keys % n_outcomes),
                    minlength=len(keys),
                )
                # Nothing precedes a start symbol: such n-grams keep their counts.
                started = history_keys[keys // n_outcomes] % base == n_outcomes
                counts = np.where(started & (n > 1), counts, distinct)
                keys, counts = keys[counts > 0], counts[counts > 0]
            levels.append(
                NGramTable.from_counts(
                    history_keys,
                    keys,
                    counts,
                    n_outcomes,
                    self.discount == "modified",
                    1 if n == 1 or self.cutoffs is None else self.cutoffs[n - 2],
                )
            )
        return levels

    def _check_cutoffs(self):
        if self.cutoffs is None:
            return
        if len(self.cutoffs) != self.order - 1 or not all(
            isinstance(cutoff, Integral) and cutoff >= 1 for cutoff in self.cutoffs
        ):
            raise ValueError(
                f"cutoffs holds {self.order - 1} whole numbers from 1 on for order "
                f"{self.order}, one for bigrams and each longer n-gram; got "
                f"{self.cutoffs!r}"
            )

    def _history_ids(self, history):
        """Id of each history at each level, -1 where it was not seen."""
        base = len(self.vocabulary_) + 1
        history_id = np.zeros(len(history), np.int64)
        yield self._levels[0], history_id
        for n, level in enumerate(self._levels[1:]):
            key = history_id * base + history[:, n]
            key[(history_id < 0) | (history[:, n] < 0)] = -1
            history_id = find_keys(level.history_keys, key)
            yield level, history_id

    def _probabilities(self, history, outcome):
        n_outcomes = len(self.vocabulary_)
        proba = np.full(len(outcome), 1.0 / n_outcomes)
        for level, history_id in self._history_ids(history):
            known = np.flatnonzero(history_id >= 0)
            history_id = history_id[known]
            place = find_keys(level.keys, history_id * n_outcomes + outcome[known])
            proba[known] *= level.backoff[history_id]
            proba[known[place >= 0]] += level.proba[place[place >= 0]]
        # Probabilities of an ARPA file are sums of numbers that may be negative.
        return np.maximum(proba, 0.0)

    def _distribution(self, history):
        n_outcomes = len(self.vocabulary_)
        proba = np.full((len(history), n_outcomes), 1.0 / n_outcomes)
        for level, history_id in self._history_ids(history):
            for row in np.flatnonzero(history_id >= 0):
                begin, end = level.offsets[history_id[row] : history_id[row] + 2]
                proba[row] *= level.backoff[history_id[row]]
                proba[row, level.outcome[begin:end]] += level.proba[begin:end]
        return np.maximum(proba, 0.0)
