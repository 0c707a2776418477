"""Ready ensembles."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._pipeline import make_parser
from lpcfg_sk.em import EMLPCFG
from lpcfg_sk.ensemble._voting import VotingParser
from lpcfg_sk.parsing import BRACKET_PENALTY
from lpcfg_sk.pivot import PivotLPCFG
from lpcfg_sk.semi_supervised import SelfTrainingParser
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
_FIXED = {"validation_fraction": None, "tol": None}
_EM = {"max_iter": 20, "smoothing": 0.05, **_FIXED}
_PIVOT_EM = {"max_iter": 4, **_FIXED}


def make_ensemble(
    preset="accurate",
    *,
    unlabeled_weight=0.5,
    bracket_penalty=BRACKET_PENALTY,
    n_jobs=None,
    random_state=0,
    **preprocessing,
):
    """Ready ensembles of parsers, which learn from trees and raw sentences.

    Parameters
    ----------
    preset : {"fast", "accurate", "best"}, default="accurate"
        - "fast": two binarisations (right- and left-branching, with a memory of one
          sibling), each with a grammar of 16 states by the pivot learner and four
          iterations of EM, and one of 8 states by EM from a random start;
        - "accurate": two more binarisations (right-branching without memory,
          head-outward), and in each a spectral grammar of 16 states, too;
        - "best": for trees with raw sentences. As "accurate", which is its teacher,
          with 24 states in place of 16 for the pivot learner.
    unlabeled_weight : float, default=0.5
        Weight of a sentence that the ensemble has parsed itself, see
        :class:`SelfTrainingParser`. Without sentences it has no effect.
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
        step. ``min_count`` is that of several steps, so write
        ``rarewords__min_count``, ``inside__min_count`` or ``outside__min_count``.

    Returns
    -------
    parser : SelfTrainingParser
        With a :class:`VotingParser` as teacher and as student. Fitted to trees alone,
        it is the vote of members that are fitted once. Rows without trees are parsed
        by that vote, and new members are fitted to both.

    Notes
    -----
    The presets were chosen on trees held out of the training parts of the Penn Treebank
    sample and of GUM, see "Votes" in the guide to model selection.

    Examples
    --------
    >>> from lpcfg_sk import make_ensemble
    >>> [name for name, _ in make_ensemble("accurate").teacher.estimators][:3]
    ['right0-spectral', 'right0-pivot', 'right0-em']
    """
    options = {"bracket_penalty": bracket_penalty, "n_jobs": n_jobs}
    student = None
    if preset == "fast":
        seeds = _seeds(random_state, 2)
        members = _members(("right1", "left1"), seeds, 16, spectral=False)
    elif preset in ("accurate", "best"):
        seeds = _seeds(random_state, len(_BINARISATIONS))
        members = _members(_BINARISATIONS, seeds, 16)
        if preset == "best":
            parsers = _parsers(_members(_BINARISATIONS, seeds, 24), preprocessing)
            student = VotingParser(parsers, **options)
    else:
        raise ValueError(f"preset is 'fast', 'accurate' or 'best', got {preset!r}")
    return SelfTrainingParser(
        VotingParser(_parsers(members, preprocessing), **options),
        student,
        unlabeled_weight=unlabeled_weight,
        n_jobs=n_jobs,
    )


def _members(binarisations, seeds, m, *, spectral=True):
    """List names, learners and binarisations; `m` is for the pivot learner."""
    members = []
    for seed, name in zip(seeds, binarisations, strict=True):
        learners = {
            "spectral": SpectralLPCFG(16, random_state=seed),
            "pivot": EMLPCFG(m, init=PivotLPCFG(m), random_state=seed, **_PIVOT_EM),
            "em": EMLPCFG(8, random_state=seed, **_EM),
        }
        if not spectral:
            del learners["spectral"]
        for kind, learner in learners.items():
            members.append((f"{name}-{kind}", learner, _BINARISATIONS[name]))
    return members


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
