import sys
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._aggregate import pair_probabilities
from lpcfg_sk.pivot import anchor_posteriors, cca, conditional_means

# Standard deviation of the log-normal noise on the unigram that starts plain EM.
_INIT_NOISE = 0.1
# Rounds without improvement on held-out data before giving up.
_PATIENCE = 3
# Rounds that EM needs to leave the plateau around its symmetric random start.
_PLATEAU = 15
# Pivots are looked for among this many times m of the commonest words.
_CANDIDATES_PER_STATE = 4


class Estimate(NamedTuple):
    """A trained aggregate model and how it came about; fields as in the estimator."""

    r: np.ndarray
    s: np.ndarray
    pi: np.ndarray
    pivots: np.ndarray | None
    pivot_iter: int
    n_iter: int
    converged: bool
    lower_bounds: list
    validation_scores: np.ndarray | None
    zero_fraction: float


class _Parameters(NamedTuple):
    r: np.ndarray
    s: np.ndarray
    pi: np.ndarray


class _Rounds(NamedTuple):
    parameters: _Parameters
    n_rounds: int
    converged: bool
    bounds: list
    scores: list


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
    random_state = check_random_state(options.random_state)
    unigram = counts.outcome_counts / counts.total
    alpha, beta = (0.0, 0.0) if options.prior is None else options.prior
    pivot_rounds, em_rounds = (None, None) if rounds is None else rounds

    def update(parameters, *, columns):
        r, s, _ = parameters
        contexts, outcomes, log_likelihood, _ = counts.expect(
            r, s, columns=columns, n_jobs=options.n_jobs
        )
        pi = contexts.sum(axis=0, dtype=np.float64)
        pi /= pi.sum()
        r = _normalised_rows(contexts, alpha, pi)
        if columns:
            s = _normalised_columns(outcomes, beta, unigram, s)
        return _Parameters(r, s, pi), log_likelihood / counts.total

    def score(parameters):
        """Fewer impossible events first, then the mean log probability."""
        context = held_out.history[:, 0]
        proba = mixed_probabilities(
            parameters.r,
            parameters.s,
            np.where(context < 0, len(parameters.r) - 1, context),
            held_out.outcome,
            unigram,
            options.unigram_weight,
        )
        possible = proba > 0
        n_zero = len(proba) - int(possible.sum())
        mean = np.log(proba[possible]).mean() if possible.any() else -np.inf
        return -n_zero, float(mean)

    def repeat(name, parameters, step, max_rounds, fixed, plateau=0):
        if fixed is not None:
            bounds = []
            for _ in range(fixed):
                parameters, bound = step(parameters)
                bounds.append(bound)
            return _Rounds(parameters, fixed, True, bounds, [])
        bounds, scores = [], []
        best, best_parameters, converged = 0, parameters, False
        milestone = 0
        if held_out is not None:
            scores.append(score(parameters))
        for n_rounds in range(1, max_rounds + 1):
            parameters, bound = step(parameters)
            bounds.append(bound)
            if options.verbose:
                sys.stderr.write(f"{name} {n_rounds}: log likelihood {bound:.6f}\n")
            if held_out is None:
                best, best_parameters = n_rounds, parameters
                gain = bounds[-1] - bounds[-2] if n_rounds > 1 else np.inf
                if n_rounds > plateau and gain < options.tol:
                    converged = True
                    break
                continue
            scores.append(score(parameters))
            if scores[-1] > scores[best]:
                best, best_parameters = n_rounds, parameters
            n_zero, mean = scores[milestone]
            if scores[-1] > (n_zero, mean + options.tol):
                milestone = n_rounds
            elif n_rounds >= max(milestone + _PATIENCE, plateau):
                converged = True
                break
        return _Rounds(best_parameters, best, converged, bounds, scores)

    pivots, pivot_iter = None, 0
    if options.init == "pivot":
        s, pi, pivots = pivot_outcomes(options, counts, random_state)
        if beta:
            mass = counts.total * pi
            s = (s * mass + beta * unigram[:, np.newaxis]) / (mass + beta)
        parameters, _ = update(
            _Parameters(_tile(pi, counts), s.astype(np.float32), pi), columns=False
        )
        concave = repeat(
            "concave step",
            parameters,
            lambda parameters: update(parameters, columns=False),
            options.pivot_max_iter - 1,
            None if pivot_rounds is None else pivot_rounds - 1,
        )
        parameters, pivot_iter = concave.parameters, concave.n_rounds + 1
    else:
        pi = np.full(options.m, 1.0 / options.m)
        s = unigram[:, np.newaxis] * np.exp(
            _INIT_NOISE * random_state.standard_normal((len(unigram), options.m))
        )
        s /= s.sum(axis=0)
        parameters = _Parameters(_tile(pi, counts), s.astype(np.float32), pi)
    em = repeat(
        "EM iteration",
        parameters,
        lambda parameters: update(parameters, columns=True),
        options.max_iter,
        em_rounds,
        plateau=_PLATEAU if options.init == "random" else 0,
    )
    scores, zero_fraction = None, np.nan
    if em.scores:
        scores = np.array([mean for _, mean in em.scores])
        zero_fraction = -em.scores[em.n_rounds][0] / len(held_out.outcome)
    return Estimate(
        *em.parameters,
        pivots,
        pivot_iter,
        em.n_rounds,
        em.converged,
        em.bounds,
        scores,
        zero_fraction,
    )


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
        The two words of each event.
    unigram : ndarray of shape (n_outcomes,)
        Distribution to mix in.
    unigram_weight : float
        Its weight.

    Returns
    -------
    proba : ndarray of float64, shape (n_events,)
    """
    proba = np.empty(len(outcome), np.float32)
    pair_probabilities(context, outcome, r, s, proba)
    proba = proba.astype(np.float64)
    if unigram_weight:
        proba *= 1 - unigram_weight
        proba += unigram_weight * unigram[outcome]
    return proba


def _tile(pi, counts):
    return np.tile(pi.astype(np.float32), (counts.matrix.shape[0], 1))


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
