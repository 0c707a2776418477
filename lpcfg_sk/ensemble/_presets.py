"""Ready ensembles of parsers."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._pipeline import make_parser
from lpcfg_sk.em import EMLPCFG
from lpcfg_sk.ensemble._voting import VotingParser
from lpcfg_sk.parsing import BRACKET_PENALTY
from lpcfg_sk.spectral import SpectralLPCFG

__all__ = ["make_ensemble"]

_BINARISATIONS = {
    "right0": {"direction": "right", "horizontal": 0},
    "right1": {"direction": "right", "horizontal": 1},
    "left1": {"direction": "left", "horizontal": 1},
    "head1": {"direction": "head", "horizontal": 1},
}

# A fixed, small number of iterations: a vote gains more from different local optima
# than from members that are each at their best.
_EM = {"max_iter": 20, "smoothing": 0.05, "validation_fraction": None, "tol": None}


def make_ensemble(
    preset="accurate",
    *,
    bracket_penalty=BRACKET_PENALTY,
    n_jobs=None,
    random_state=0,
    **preprocessing,
):
    """Ready ensembles of parsers.

    Parameters
    ----------
    preset : {"accurate", "fast"}, default="accurate"
        "accurate": four binarisations (right-branching without and with a memory of
        one sibling, left-branching, head-outward), each with a spectral grammar of 16
        states and an EM grammar of 8; "fast": eight EM grammars of 8 states from
        different starts in one binarisation, which share one coarse chart.
    bracket_penalty : float, default=0.43
        See :class:`VotingParser`.
    n_jobs : int, default=None
        Number of threads.
    random_state : int, RandomState instance or None, default=0
        Seed of the first start, from which the others count up; or a generator that
        draws the seeds; or None for different starts in each fit.
    **preprocessing
        Parameters of the preprocessing, see :func:`make_parser`. One with the name of
        a step before it (``inside__min_count=2``) goes to the members that have the
        step. With "accurate", ``min_count`` is that of several steps, so write
        ``rarewords__min_count``, ``inside__min_count`` or ``outside__min_count``.

    Returns
    -------
    parser : VotingParser

    Examples
    --------
    >>> from lpcfg_sk import make_ensemble
    >>> [name for name, _ in make_ensemble("accurate").estimators][:3]
    ['right0-spectral', 'right0-em', 'right1-spectral']
    """
    members = []
    if preset == "accurate":
        seeds = _seeds(random_state, len(_BINARISATIONS))
        for seed, (name, settings) in zip(seeds, _BINARISATIONS.items(), strict=True):
            spectral = SpectralLPCFG(16, random_state=seed)
            em = EMLPCFG(8, random_state=seed, **_EM)
            members.append((f"{name}-spectral", spectral, settings))
            members.append((f"{name}-em", em, settings))
    elif preset == "fast":
        for number, seed in enumerate(_seeds(random_state, 8)):
            em = EMLPCFG(8, random_state=seed, **_EM)
            members.append((f"em{number}", em, _BINARISATIONS["right1"]))
    else:
        raise ValueError(f"preset is 'accurate' or 'fast', got {preset!r}")
    return VotingParser(
        _parsers(members, preprocessing),
        bracket_penalty=bracket_penalty,
        n_jobs=n_jobs,
    )


def _seeds(random_state, n):
    if random_state is None:
        return [None] * n
    if isinstance(random_state, Integral):
        return [random_state + number for number in range(n)]
    rng = check_random_state(random_state)
    return rng.randint(np.iinfo(np.int32).max, size=n).tolist()


def _parsers(members, preprocessing):
    """Return named pipelines, each with the parameters of the steps that it has."""
    steps = {name: make_parser(learner).named_steps for name, learner, _ in members}
    parsers = []
    for name, learner, settings in members:
        own = {
            key: value
            for key, value in preprocessing.items()
            # Unknown parameters go to every member, so that one of them raises.
            if _step(key) in ("", *steps[name])
            or not any(_step(key) in known for known in steps.values())
        }
        parsers.append((name, make_parser(learner, **{**settings, **own})))
    return parsers


def _step(key):
    return key.rpartition("__")[0]
