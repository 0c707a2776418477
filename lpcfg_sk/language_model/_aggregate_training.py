"""Training of the aggregate bigram model: EM, and the pivot method to start it."""

import sys
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._aggregate import (
    SparseRows,
    pair_probabilities,
    posterior_columns,
    posterior_rows,
)
from lpcfg_sk._parallel import Resident, cut_by_work, map_chunks
from lpcfg_sk.pivot import anchor_posteriors, cca, conditional_means

# Nonzeros of the counts in a chunk of work.
_CHUNK_NONZEROS = 100_000

# Standard deviation of the log-normal noise on the unigram that starts plain EM.
_INIT_NOISE = 0.1
# Training stops after this many rounds without improvement on held-out data.
_PATIENCE = 3
# Rounds that EM needs to leave the plateau around its symmetric random start.
_PLATEAU = 15
# Pivots are looked for among this many times m of the commonest words.
_CANDIDATES_PER_STATE = 4


class BigramCounts:
    """Counts of (context, outcome) pairs by rows and by columns, for EM.

    Parameters
    ----------
    context, outcome : ndarray of int, shape (n_events,)
        The two words of each bigram.
    weight : ndarray of shape (n_events,)
        Weight of each bigram.
    shape : tuple of int
        Number of contexts and of outcomes.

    Attributes
    ----------
    matrix : csr_array of float64
        The counts.
    total : float
        Their sum.
    outcome_counts : ndarray of float64
        Column sums.
    """

    def __init__(self, context, outcome, weight, shape):
        matrix = sparse.coo_array((weight, (context, outcome)), shape=shape).tocsr()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.matrix = matrix
        self.total = float(matrix.data.sum())
        self.outcome_counts = matrix.sum(axis=0)
        # All iterations read this, so it is sent to a cluster once.
        self._by_row = Resident(
            SparseRows(matrix.indptr, matrix.indices, matrix.data.astype(np.float32))
        )
        # A transpose of the entry numbers instead of the counts gives each entry's
        # place in the rows; counted from 1, as a stored 0 might be dropped.
        place = sparse.csr_array(
            (np.arange(1, matrix.nnz + 1), matrix.indices, matrix.indptr), shape=shape
        ).tocsc()
        self._by_column = Resident(
            SparseRows(place.indptr, place.indices, place.data - 1)
        )
        self._row_chunks = cut_by_work(np.diff(matrix.indptr), _CHUNK_NONZEROS)
        self._column_chunks = cut_by_work(np.diff(place.indptr), _CHUNK_NONZEROS)

    def expect(self, r, s, *, columns=True, n_jobs=None):
        """E-step: how often each state goes with each context and each outcome.

        Parameters
        ----------
        r : ndarray of float32, shape (n_contexts, m)
            r(h | w1).
        s : ndarray of float32, shape (n_outcomes, m)
            s(w2 | h).
        columns : bool, default=True
            Whether counts of the outcomes are wanted.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        contexts : ndarray of float32, shape (n_contexts, m)
            Expected counts of (w1, h).
        outcomes : ndarray of float32, shape (n_outcomes, m), or None
            Expected counts of (w2, h).
        log_likelihood : float
            Of the events of positive probability.
        impossible : float
            Count of the other events.
        """
        indptr = self.matrix.indptr
        ratio = np.empty(self.matrix.nnz, np.float32)
        contexts = np.empty_like(r)

        def by_row(counts, begin, end):
            rows = counts._replace(indptr=counts.indptr[begin : end + 1])
            part = np.empty((end - begin, r.shape[1]), np.float32)
            part_ratio = np.empty(rows.indptr[-1] - rows.indptr[0], np.float32)
            sums = posterior_rows(rows, r[begin:end], s, True, part_ratio, part)
            return part, part_ratio, *sums

        def by_column(places, begin, end):
            columns = places._replace(indptr=places.indptr[begin : end + 1])
            part = np.empty((end - begin, s.shape[1]), np.float32)
            posterior_columns(columns, ratio, r, s[begin:end], part)
            return part

        log_likelihood = impossible = 0.0
        chunks = [(self._by_row, *rows) for rows in self._row_chunks]
        parts = map_chunks(by_row, chunks, n_jobs=n_jobs)
        for (begin, end), part in zip(self._row_chunks, parts, strict=True):
            contexts[begin:end], ratio[indptr[begin] : indptr[end]] = part[:2]
            log_likelihood += part[2]
            impossible += part[3]
        if not columns:
            return contexts, None, log_likelihood, impossible
        outcomes = np.empty_like(s)
        chunks = [(self._by_column, *rows) for rows in self._column_chunks]
        parts = map_chunks(by_column, chunks, n_jobs=n_jobs)
        for (begin, end), part in zip(self._column_chunks, parts, strict=True):
            outcomes[begin:end] = part
        return contexts, outcomes, log_likelihood, impossible


class Estimate(NamedTuple):
    """Parameters (r, s, π) after the best round, and the course of training.

    Scores are those of held-out data before the first round and after each.
    """

    parameters: tuple
    n_iter: int
    converged: bool
    lower_bounds: list
    scores: list
    pivots: np.ndarray | None = None
    pivot_iter: int = 0
    zero_fraction: float = np.nan


def train(options, counts, held_out, rounds=None):
    """Train an aggregate model.

    Parameters
    ----------
    options : AggregateMarkovLM
        Its parameters; not changed.
    counts : BigramCounts
        Training bigrams.
    held_out : Events or None
        Scored events that choose the numbers of rounds.
    rounds : tuple of int, default=None
        Numbers of concave steps and of EM iterations to run instead of choosing.

    Returns
    -------
    Estimate
    """
    training = _Training(options, counts, held_out)
    random_state = check_random_state(options.random_state)
    n_init = 1 if options.init == "pivot" else options.n_init
    best, best_quality = None, None
    for n in range(n_init):
        if options.verbose and n_init > 1:
            sys.stderr.write(f"start {n + 1} of {n_init}\n")
        run = _train_once(training, random_state, rounds)
        if n_init == 1:
            return run
        quality = run.scores[run.n_iter] if run.scores else training.quality(run)
        if best is None or quality > best_quality:
            best, best_quality = run, quality
    return best


def _train_once(training, random_state, rounds):
    """Train from one start."""
    options = training.options
    pivot_rounds, em_rounds = (None, None) if rounds is None else rounds
    pivots, pivot_iter, plateau = None, 0, 0
    if options.init == "pivot":
        s, pi, pivots = pivot_outcomes(options, training.counts, random_state)
        start = training.start_from_pivots(s, pi)
        if pivot_rounds is not None:
            pivot_rounds -= 1
        concave = training.run(
            start, options.pivot_max_iter - 1, pivot_rounds, update_outcomes=False
        )
        start, pivot_iter = concave.parameters, concave.n_iter + 1
    else:
        start, plateau = training.start_from_unigram(random_state), _PLATEAU
    em = training.run(start, options.max_iter, em_rounds, plateau=plateau)
    em = em._replace(pivots=pivots, pivot_iter=pivot_iter)
    if em.scores:
        n_zero = -em.scores[em.n_iter][0]
        n_events = len(training.held_out.outcome)
        em = em._replace(zero_fraction=n_zero / n_events)
    return em


class _Training:
    """EM for one model: its options, counts of bigrams, and held-out events."""

    def __init__(self, options, counts, held_out):
        self.options = options
        self.counts = counts
        self.held_out = held_out
        self.unigram = counts.outcome_counts / counts.total
        self.alpha, self.beta = options.prior or (0.0, 0.0)

    def start_from_unigram(self, random_state):
        m = self.options.m
        noise = random_state.standard_normal((len(self.unigram), m))
        s = self.unigram[:, np.newaxis] * np.exp(_INIT_NOISE * noise)
        s /= s.sum(axis=0)
        return self._start(s, np.full(m, 1.0 / m))

    def start_from_pivots(self, s, pi):
        if self.beta:
            mass = self.counts.total * pi
            smoothing = self.beta * self.unigram[:, np.newaxis]
            s = (s * mass + smoothing) / (mass + self.beta)
        parameters, _ = self.step(self._start(s, pi), update_outcomes=False)
        return parameters

    def _start(self, s, pi):
        r = np.tile(pi.astype(np.float32), (self.counts.matrix.shape[0], 1))
        return r, s.astype(np.float32), pi

    def step(self, parameters, *, update_outcomes):
        """New parameters, and the mean log likelihood of the old ones.

        With s given, the likelihood is concave in r: the step of the pivot method.
        """
        r, s, _ = parameters
        contexts, outcomes, log_likelihood, _ = self.counts.expect(
            r, s, columns=update_outcomes, n_jobs=self.options.n_jobs
        )
        pi = contexts.sum(axis=0, dtype=np.float64)
        pi /= pi.sum()
        r = _normalised_rows(contexts, self.alpha, pi)
        if update_outcomes:
            s = _normalised_columns(outcomes, self.beta, self.unigram, s)
        return (r, s, pi), log_likelihood / self.counts.total

    def quality(self, estimate):
        """Fewer impossible training events first, then the log likelihood."""
        r, s, _ = estimate.parameters
        _, _, log_likelihood, impossible = self.counts.expect(
            r, s, columns=False, n_jobs=self.options.n_jobs
        )
        return -impossible, log_likelihood

    def score(self, parameters):
        """Fewer impossible events first, then the mean log probability."""
        r, s, _ = parameters
        context, outcome = self.held_out.history[:, 0], self.held_out.outcome
        proba = mixed_probabilities(
            r, s, context, outcome, self.unigram, self.options.unigram_weight
        )
        possible = proba > 0
        n_zero = len(proba) - int(possible.sum())
        mean = np.log(proba[possible]).mean() if possible.any() else -np.inf
        return -n_zero, float(mean)

    def run(
        self, parameters, max_rounds, n_rounds=None, *, update_outcomes=True, plateau=0
    ):
        """Repeat the step `n_rounds` times, or until it no longer helps."""
        fixed = n_rounds is not None
        choosing = not fixed and self.held_out is not None
        tol = self.options.tol
        name = "EM iteration" if update_outcomes else "concave step"
        bounds, scores = [], [self.score(parameters)] if choosing else []
        best, best_parameters, milestone, converged = 0, parameters, 0, fixed
        for n in range(1, (n_rounds if fixed else max_rounds) + 1):
            parameters, bound = self.step(parameters, update_outcomes=update_outcomes)
            bounds.append(bound)
            if self.options.verbose and not fixed:
                sys.stderr.write(f"{name} {n}: log likelihood {bound:.6f}\n")
            if not choosing:
                best, best_parameters = n, parameters
                gain = bounds[-1] - bounds[-2] if n > 1 else np.inf
                stop = not fixed and n > plateau and gain < tol
            else:
                scores.append(self.score(parameters))
                if scores[-1] > scores[best]:
                    best, best_parameters = n, parameters
                n_zero, mean = scores[milestone]
                if scores[-1] > (n_zero, mean + tol):
                    milestone = n
                stop = n >= max(milestone + _PATIENCE, plateau)
            if stop:
                converged = True
                break
        return Estimate(best_parameters, best, converged, bounds, scores)


def pivot_outcomes(options, counts, random_state):
    """s(w2 | h) by section 5.2 of Cohen and Collins, with f the second word.

    Parameters
    ----------
    options : AggregateMarkovLM
        Its parameters.
    counts : BigramCounts
        Training bigrams.
    random_state : RandomState
        Starting vectors of the SVD.

    Returns
    -------
    s : ndarray of shape (n_outcomes, m)
        Columns sum to 1.
    pi : ndarray of shape (m,)
        Share of each state.
    pivots : ndarray of int, shape (m,)
        The pivot word of each state.
    """
    Q = sparse.csr_array(counts.matrix.T)
    frequency = counts.outcome_counts
    projection = cca(Q, options.m, kappa=options.kappa, random_state=random_state)
    min_count = options.anchor_min_count
    if min_count == "auto":
        n_candidates = min(_CANDIDATES_PER_STATE * options.m, len(frequency))
        min_count = np.sort(frequency)[-n_candidates]
    posteriors, pivots = anchor_posteriors(
        conditional_means(Q, frequency, projection.right),
        frequency,
        options.m,
        min_count=min_count,
        n_jobs=options.n_jobs,
    )
    joint = posteriors * frequency[:, np.newaxis]
    mass = joint.sum(axis=0)
    return joint / mass, mass / mass.sum(), pivots


def mixed_probabilities(r, s, context, outcome, unigram, unigram_weight):
    """Probability of each outcome after each context.

    Parameters
    ----------
    r, s : ndarray of float32
        Parameters of the model.
    context, outcome : ndarray of int
        The two words of each event; a context of -1 is none.
    unigram : ndarray of shape (n_outcomes,)
        Distribution to mix in.
    unigram_weight : float
        Its weight.

    Returns
    -------
    proba : ndarray of float64, shape (n_events,)
    """
    context = np.where(context < 0, len(r) - 1, context)
    if (
        r.shape[1] != s.shape[1]
        or context.max(initial=0) >= len(r)
        or outcome.max(initial=0) >= len(s)
    ):
        raise ValueError("the model does not have one row of parameters per word")
    proba = np.empty(len(outcome), np.float32)
    pair_probabilities(context, outcome, r, s, proba)
    proba = proba.astype(np.float64)
    if unigram_weight:
        proba *= 1 - unigram_weight
        proba += unigram_weight * unigram[outcome]
    return proba


def _normalised_rows(joint, alpha, pi):
    """r(h | w1) from expected counts, in place; contexts never seen get π."""
    if alpha:
        joint += (alpha * pi).astype(np.float32)
    norm = joint.sum(axis=1, keepdims=True)
    empty = norm[:, 0] == 0
    norm[empty] = 1
    joint /= norm
    joint[empty] = pi
    return joint


def _normalised_columns(joint, beta, unigram, before):
    """s(w2 | h) from expected counts, in place; states without counts stay."""
    if beta:
        joint += (beta * unigram).astype(np.float32)[:, np.newaxis]
    norm = joint.sum(axis=0, dtype=np.float64)
    empty = norm == 0
    norm[empty] = 1
    joint /= norm.astype(np.float32)
    joint[:, empty] = before[:, empty]
    return joint
