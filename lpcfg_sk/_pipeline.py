"""The standard pipeline from trees to a parser."""

import inspect

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from lpcfg_sk.em import PCFG
from lpcfg_sk.features import InsideFeatures, OutsideFeatures
from lpcfg_sk.parsing import Parser
from lpcfg_sk.treebank import RareWords, TreeBinarizer


def make_parser(learner=None, *, memory=None, verbose=False, **preprocessing):
    """Put a learner behind the standard preprocessing.

    Parameters
    ----------
    learner : estimator, default=None
        A learner such as :class:`SpectralLPCFG`; :class:`PCFG` where None.
    memory : str or joblib.Memory, default=None
        Cache of the fitted preprocessing steps, see
        :class:`sklearn.pipeline.Pipeline`.
    verbose : bool, default=False
        Whether the pipeline reports how long each step takes.
    **preprocessing
        Parameters of the steps, by their own name where only one step has it
        (``horizontal=1, min_count=2``), or with the step's name before it
        (``inside__templates=...``).

    Returns
    -------
    parser : Parser
        A pipeline with the steps ``binarize``, ``rarewords``, ``inside`` and
        ``outside`` where the learner uses features of nodes, and ``learner``.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, make_parser
    >>> parser = make_parser(PCFG(), horizontal=1, min_count=2)
    >>> list(parser.named_steps)
    ['binarize', 'rarewords', 'learner']
    >>> parser.named_steps["binarize"].horizontal
    1
    """
    if learner is None:
        learner = PCFG()
    if inspect.isclass(learner) or not hasattr(learner, "fit"):
        raise TypeError(f"learner must be an estimator such as PCFG(), got {learner!r}")
    if not hasattr(learner, "predict"):
        raise TypeError(
            f"learner must have fit and predict, as PCFG() has, to parse with; got "
            f"{learner!r}, which has no predict. Use it without make_parser"
        )
    if isinstance(learner, Pipeline):
        raise TypeError(
            f"learner must not have preprocessing of its own; got {learner!r}. Use it "
            "without make_parser, or give its last step"
        )
    kind = get_tags(learner).estimator_type
    if kind is not None:
        raise TypeError(
            f"learner must learn from trees, as PCFG() does; got {learner!r}, a {kind} "
            "of arrays. lpcfg_sk has PCFG, EMLPCFG, SpectralLPCFG, PivotLPCFG and "
            "MarginEMPCFG"
        )
    steps = [("binarize", TreeBinarizer()), ("rarewords", RareWords())]
    if getattr(learner, "_uses_features", False):
        steps += [("inside", InsideFeatures()), ("outside", OutsideFeatures())]
    for name, value in preprocessing.items():
        _set(steps, name, value)
    return Parser([*steps, ("learner", learner)], memory=memory, verbose=verbose)


def unfrozen(estimator):
    """Return the estimator inside a ``FrozenEstimator``, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _set(steps, name, value):
    """Give a parameter to the one step that has it."""
    step, _, own = name.rpartition("__")
    owners = [
        (known, estimator)
        for known, estimator in steps
        if step in ("", known) and own in estimator.get_params(deep=False)
    ]
    if len(owners) == 1:
        owners[0][1].set_params(**{own: value})
        return
    if owners:
        options = ", ".join(f"{known}__{own}" for known, _ in owners)
        raise TypeError(
            f"make_parser: {name!r} is a parameter of several steps of the "
            f"preprocessing; say which of {options} is meant"
        )
    options = sorted(
        f"{known}__{parameter}"
        for known, estimator in steps
        for parameter in estimator.get_params(deep=False)
    )
    raise TypeError(
        f"make_parser: {name!r} is no parameter of the preprocessing; the parameters "
        f"are {', '.join(options)}. Those of the learner belong to the learner itself"
    )
