"""Aggregate Markov language model."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ConvergenceWarning
from lpcfg_sk.language_model._aggregate_training import (
    BigramCounts,
    mixed_probabilities,
    train,
)
from lpcfg_sk.language_model._base import END, BaseLanguageModel
from lpcfg_sk.language_model._counting import Events, check_corpus, count_ngrams
from lpcfg_sk.lpcfg import LPCFG
from lpcfg_sk.pivot import check_counts


class AggregateMarkovLM(BaseLanguageModel):
    r"""Aggregate Markov bigram model of Saul and Pereira, by EM, pivots, or both.

    .. math:: p(w_2 | w_1) = \sum_{h=1}^m r(h | w_1) s(w_2 | h)

    Parameters
    ----------
    m : int, default=32
        Number of latent states.
    init : {"random", "pivot"}, default="random"
        Where EM starts: from the unigram distribution with a little noise, or from the
        pivot estimate (section 8 of Cohen and Collins, 2014).
    n_init : int, default=1
        Number of random starts. The model with the highest probability of held-out
        data is kept, or of training data if none are held out. The pivot estimate is
        one start.
    max_iter : int, default=50
        Largest number of EM iterations; 0 keeps the start.
    tol : float, default=1e-4
        EM ends when one iteration raises the mean log likelihood of the training data,
        or three iterations raise that of held-out data, by less than this.
    prior : tuple (alpha, beta) or None, default=(5.0, 100.0)
        Pseudo-counts of the two Dirichlet priors: r(h | w1) is drawn towards π(h) by
        ``alpha`` events per context, s(w2 | h) towards the unigram by ``beta`` events
        per state.  None gives maximum likelihood, which leaves held-out events with
        probability 0.
    unigram_weight : float, default=0.0
        Weight of the unigram distribution mixed into the predictions.
    validation_fraction : float or None, default=0.1
        Share of the sentences, the last ones, held out to choose the number of
        iterations; the model is then fitted to all sentences with these numbers. In
        stream mode, where this is less than one sentence, it is a share of the tokens,
        so that X may be one document. None runs all iterations.
    pivot_max_iter : int, default=20
        Largest number of iterations of the concave step that finds r given the pivot
        estimate of s.  Many iterations overfit, so without held-out data it should be
        small.
    anchor_min_count : float or "auto", default="auto"
        Least count of a word that may be a pivot; "auto" admits the ``4 * m``
        commonest words.
    kappa : float, default=50.0
        Added to the word counts in the CCA of the pivot method.
    mode : {"stream", "sentence"}, default="stream"
        "stream" runs the sentences together; "sentence" puts a start symbol before
        each and predicts its end.
    min_count : int, default=2
        Words seen less often in training become the unknown word.
    score_unk : bool, default=False
        Whether unknown words count as outcomes when scoring.  They always count as
        contexts.
    unk_token : str, default="<unk>"
        Name of the unknown word; tokens of that name are unknown words too.
    vocabulary : sequence of str, default=None
        The words of the model, whatever their counts; all others are unknown. None
        takes those of the text by `min_count`.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        Whether to report each iteration.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise and of the SVD.

    Attributes
    ----------
    vocabulary_ : ndarray of str
        Outcomes: the unknown word, in sentence mode the end symbol, then words by
        decreasing count.
    r_ : ndarray of float32, shape (n_contexts + 1, m)
        r(h | w1) for the outcomes and, in sentence mode, the start symbol.  The last
        row is π(h), for a token without context.
    s_ : ndarray of float32, shape (n_outcomes, m)
        s(w2 | h).
    pi_ : ndarray of shape (m,)
        Share of each state in the training data.
    unigram_ : ndarray of shape (n_outcomes,)
        Distribution of the outcomes in the training data.
    m_ : int
        Number of states; below m where the words support fewer pivots.
    pivots_ : list of str or None
        The pivot word of each state, for ``init="pivot"``.
    n_iter_ : int
        EM iterations of the fitted model.
    n_pivot_iter_ : int
        Iterations of the concave step of the pivot method.
    converged_ : bool
        Whether EM ended before ``max_iter``.
    lower_bounds_ : ndarray of shape (n_rounds,)
        Mean log likelihood of the training data before each EM iteration.
    validation_scores_ : ndarray or None
        Mean log probability of held-out tokens at the start of EM and after each
        iteration; tokens of probability 0 are left out and counted in
        ``zero_fraction_``.
    zero_fraction_ : float
        Share of the scored held-out tokens that have probability 0 under the chosen
        model; nan without held-out data.

    See Also
    --------
    KneserNeyLM : The n-gram model to compare with.

    Notes
    -----
    Held-out data choose first the number of concave steps, then that of EM iterations.
    Fewer tokens of probability 0 always win over a higher mean of the others.

    With ``prior``, π is re-estimated in each iteration, so the training likelihood may
    fall slightly; without it, it never does.

    References
    ----------
    Saul, L. and Pereira, F. (1997). Aggregate and mixed-order Markov models for
    statistical language processing. EMNLP.

    Cohen, S. B. and Collins, M. (2014). A provably correct learning algorithm for
    latent-variable PCFGs. ACL.

    Examples
    --------
    >>> from lpcfg_sk.language_model import AggregateMarkovLM
    >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
    >>> model = AggregateMarkovLM(m=3, prior=(0.1, 0.1), random_state=0).fit(X)
    >>> round(model.perplexity([["the", "cat", "purrs"]]), 1)
    2.1
    """

    _parameter_constraints: dict = {
        **BaseLanguageModel._parameter_constraints,
        "m": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "pivot"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "prior": [tuple, list, None],
        "unigram_weight": [Interval(Real, 0.0, 1.0, closed="both")],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "pivot_max_iter": [Interval(Integral, 1, None, closed="left")],
        "anchor_min_count": [
            StrOptions({"auto"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "kappa": [Interval(Real, 0.0, None, closed="left")],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    _order = 2

    def __init__(
        self,
        m=32,
        *,
        init="random",
        n_init=1,
        max_iter=50,
        tol=1e-4,
        prior=(5.0, 100.0),
        unigram_weight=0.0,
        validation_fraction=0.1,
        pivot_max_iter=20,
        anchor_min_count="auto",
        kappa=50.0,
        mode="stream",
        min_count=2,
        score_unk=False,
        unk_token="<unk>",
        vocabulary=None,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.m = m
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.unigram_weight = unigram_weight
        self.validation_fraction = validation_fraction
        self.pivot_max_iter = pivot_max_iter
        self.anchor_min_count = anchor_min_count
        self.kappa = kappa
        self.mode = mode
        self.min_count = min_count
        self.score_unk = score_unk
        self.unk_token = unk_token
        self.vocabulary = vocabulary
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, X_val=None, sample_weight=None):
        """Estimate the model.

        Parameters
        ----------
        X : iterable of list of str
            Training sentences. An iterator or a :class:`SentenceFile` is read once, in
            the memory of its distinct bigrams, unless a part of it is to be held out
            (`validation_fraction`) or there are weights.
        y : None
            Ignored.
        X_val : list of list of str, default=None
            Held-out sentences that choose the number of iterations, instead of a
            part of X.
        sample_weight : array-like of shape (n_sentences,), default=None
            Weights of the sentences, which may be fractions. Those of weight 0 are
            left out; ``min_count`` counts each of the others once.

        Returns
        -------
        self
        """
        self._check_prior()
        rounds = validation = None
        if X_val is not None:
            validation = check_corpus(X_val, estimator=self)
        splits = X_val is None and self.validation_fraction is not None
        if not hasattr(X, "__len__") and sample_weight is None and not splits:
            model = self._train(*count_ngrams(self, X), validation)
            self._keep(model, model)
            return self
        X, weights = self._check_training_data(X, sample_weight)
        if splits:
            kept, held_out = self._split(X)
            if any(map(len, kept)) and any(map(len, held_out)):
                trial = self._estimate(kept, weights[: len(kept)], held_out)
                rounds = trial.pivot_iter, trial.n_iter
        model = self._estimate(X, weights, validation, rounds)
        # Held-out data is seen in the trial only.
        self._keep(model, model if rounds is None else trial)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_counts(self, counts, vocabulary, *, X_val=None):
        """Estimate the model from a matrix of bigram counts (section 8, step 1).

        Parameters
        ----------
        counts : {ndarray, sparse matrix} of shape (n_words, n_words)
            ``counts[i, j]`` is how often word j came after word i. In sentence mode
            there is one more row, of what came after the start of a sentence.
        vocabulary : sequence of str
            The words, in the order of rows and columns. The unknown word, and in
            sentence mode the end ``"</s>"``, may be among them or have no counts.
            All words are kept, whatever `min_count`.
        X_val : list of list of str, default=None
            Held-out sentences that choose the number of iterations; without them
            all iterations are run.

        Returns
        -------
        self

        Examples
        --------
        >>> from lpcfg_sk.language_model import AggregateMarkovLM
        >>> model = AggregateMarkovLM(m=1, prior=None)
        >>> model = model.fit_counts([[0, 3], [1, 0]], ["a", "b"])
        >>> model.predict_proba([["a"]]).round(2)
        array([[0.  , 0.25, 0.75]])
        """
        self._check_prior()
        counts = check_counts(counts)
        words = list(vocabulary)
        expected = (len(words) + (self.mode == "sentence"), len(words))
        if counts.shape != expected or len(set(words)) != len(words):
            raise ValueError(
                f"counts of {len(words)} different words in {self.mode} mode have the "
                f"shape {expected}, got {counts.shape} and {len(set(words))} different "
                "words"
            )
        special = self._special()
        self._name_outcomes([*special, *(w for w in words if w not in special)])
        place = [self._index[word] for word in words]
        # The start symbol comes after the outcomes.
        place = np.array([*place, len(self._index)])
        if X_val is not None:
            X_val = check_corpus(X_val, estimator=self)
        row, column = counts.nonzero()
        events = Events(place[column], place[row][:, None], np.arange(counts.nnz))
        model = self._train(events, counts.data, X_val)
        self._keep(model, model)
        return self

    def _check_prior(self):
        if self.prior is not None and not (
            len(self.prior) == 2
            and all(isinstance(count, Real) and count >= 0 for count in self.prior)
        ):
            raise ValueError(
                "prior must be None or a pair (alpha, beta) of non-negative "
                f"pseudo-counts, got {self.prior!r}"
            )

    def _keep(self, model, reported):
        """Set the fitted attributes; `reported` saw the held-out data."""
        self.r_, self.s_, self.pi_ = model.parameters
        self.m_ = self.s_.shape[1]
        self.pivots_ = None
        if model.pivots is not None:
            self.pivots_ = self.vocabulary_[model.pivots].tolist()
        self.n_iter_, self.n_pivot_iter_ = model.n_iter, model.pivot_iter
        self.lower_bounds_ = np.array(model.lower_bounds)
        self.converged_ = reported.converged
        self.validation_scores_ = None
        if reported.scores:
            self.validation_scores_ = np.array([mean for _, mean in reported.scores])
        self.zero_fraction_ = reported.zero_fraction
        if not self.converged_ and self.max_iter > 0:
            warn_caller(
                f"EM did not converge in {self.max_iter} iterations; raise max_iter "
                "or tol",
                ConvergenceWarning,
            )

    def _split(self, X):
        """Sentences to learn from, and the last ones, which are held out."""
        fraction = self.validation_fraction
        if self.mode == "sentence" or fraction * len(X) >= 1:
            cut = max(len(X) - max(1, round(fraction * len(X))), 1)
            return X[:cut], X[cut:]
        ends = np.cumsum([len(sentence) for sentence in X])
        # Keep at least two tokens, which make one bigram.
        n_kept = max(int(ends[-1]) - max(1, round(fraction * int(ends[-1]))), 2)
        row = int(np.searchsorted(ends, n_kept))
        if row == len(X):
            return X, []
        place = n_kept - int(ends[row] - len(X[row]))
        kept = [*X[:row], X[row][:place]]
        return kept, [X[row][place:], *X[row + 1 :]]

    def _estimate(self, X, weights, X_val, rounds=None):
        """Fit to X; the number of rounds is given, or chosen on X_val if any."""
        self._set_vocabulary(X, np.ones(len(X)))
        events = self._encode(X)
        return self._train(events, weights[events.sample], X_val, rounds)

    def _train(self, events, weights, X_val, rounds=None):
        """Fit to events of some weights."""
        known = events.history[:, 0] >= 0
        n_outcomes = len(self.vocabulary_)
        counts = BigramCounts(
            events.history[known, 0],
            events.outcome[known],
            weights[known],
            # The last row is for a token without context and has no counts.
            (n_outcomes + (self.mode == "sentence") + 1, n_outcomes),
        )
        if counts.total == 0:
            raise ValueError(
                "X has no bigram: stream mode needs two tokens at least, in sentences "
                "of positive weight"
            )
        self.unigram_ = counts.outcome_counts / counts.total
        held_out = None
        if X_val is not None:
            events, scored = self._events(X_val)
            if scored.any():
                held_out = Events(*(column[scored] for column in events))
        return train(self, counts, held_out, rounds)

    def _probabilities(self, history, outcome):
        words = history[:, 0], outcome
        return mixed_probabilities(
            self.r_, self.s_, *words, self.unigram_, self.unigram_weight
        )

    def _distribution(self, history):
        proba = self.r_[history[:, 0]].astype(np.float64) @ self.s_.T
        return (1 - self.unigram_weight) * proba + self.unigram_weight * self.unigram_

    def to_lpcfg(self):
        r"""Write the model as an L-PCFG of right-branching trees (section 8).

        Returns
        -------
        grammar : LPCFG
            A sentence has one tree, with nonterminals A above the rest of a sentence, E
            above its last word and W above the others. Its value, and so
            ``sentence_log_prob`` of the sentence, is the probability that the model
            gives to all tokens (``score_unk=True``), in sentence mode with the end.

        Notes
        -----
        A state of A or E is the h of the next word, and a state of W is the word:

        .. math::
            t(A → W\,A, w, h' | h) = t(A → W\,E, w, h' | h) = s(w|h) r(h'|w), \quad
            q(E → w | h) = s(w|h) \, p(\text{end} | w)

        with p(end | w) = 1 in stream mode. In sentence mode the values of all trees sum
        to the probability of a sentence of at least one word. The grammar has m²
        weights per word. Where `unigram_weight` is positive, the unigram is one more
        state.

        Examples
        --------
        >>> from lpcfg_sk.language_model import AggregateMarkovLM
        >>> X = [["the", "dog", "barks"], ["the", "cat", "purrs"]] * 20
        >>> model = AggregateMarkovLM(m=3, mode="sentence", tol=0.1, random_state=0)
        >>> model = model.fit(X)
        >>> grammar = model.to_lpcfg()
        >>> trees = ["(A (W the) (A (W dog) (E barks)))"]
        >>> bool(abs(grammar.log_prob(trees) - model.score_samples(X[:1])) < 1e-5)
        True
        """
        check_is_fitted(self)
        r, s = self.r_.astype(np.float64), self.s_.astype(np.float64)
        if self.unigram_weight:
            share = np.full((len(r), 1), self.unigram_weight)
            r = np.hstack([r * (1 - self.unigram_weight), share])
            s = np.hstack([s, self.unigram_[:, None]])
        kept = np.arange(len(self.vocabulary_))
        start, end = r[-1], np.ones(len(kept))
        if self.mode == "sentence":
            # The end of a sentence is not a word of the grammar.
            kept = np.delete(kept, END)
            start, end = r[len(self.vocabulary_)], r[kept] @ s[END]
        step = s[kept].T[:, :, None] * r[kept]
        last = s[kept] * end[:, None]
        words = self.vocabulary_[kept]
        lexical = {
            ("W", word): row for word, row in zip(words, np.eye(len(kept)), strict=True)
        }
        lexical |= {("E", word): row for word, row in zip(words, last, strict=True)}
        return LPCFG.from_parameters(
            binary={("A", "W", "A"): step, ("A", "W", "E"): step},
            lexical=lexical,
            root={"A": start, "E": start},
            unknown_word=self.unk_token,
        )
