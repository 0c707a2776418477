"""The standard pipeline from trees to a parser."""

import inspect

from sklearn.pipeline import Pipeline

from lpcfg_sk.em import PCFG
from lpcfg_sk.features import InsideFeatures, OutsideFeatures
from lpcfg_sk.metrics import f1_score
from lpcfg_sk.treebank import RareWords, TreeBinarizer, check_treebank, unbinarize


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
        Whether the pipeline says how long each step takes.
    **preprocessing
        Parameters of the steps, by their own name where only one step has it
        (``horizontal=1, min_count=2``), or with the step's name before it
        (``inside__templates=...``).

    Returns
    -------
    parser : Pipeline
        Steps ``binarize``, ``rarewords``, ``inside`` and ``outside`` where the
        learner uses features of nodes, and ``learner``.

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
    steps = [("binarize", TreeBinarizer()), ("rarewords", RareWords())]
    if getattr(learner, "_uses_features", False):
        steps += [("inside", InsideFeatures()), ("outside", OutsideFeatures())]
    for name, value in preprocessing.items():
        _set(steps, name, value)
    return Pipeline([*steps, ("learner", learner)], memory=memory, verbose=verbose)


def f1_scorer(estimator, X, y=None, *, sample_weight=None):
    """Labelled F1 of the trees that any parser predicts.

    What ``score`` is for most parsers, for those whose ``score`` is something else:
    that of :class:`MarginEMPCFG` is the mean log probability.

    Parameters
    ----------
    estimator : estimator or Pipeline
        A fitted parser.
    X : Treebank or iterable of trees
        Sentences to parse, and the gold trees where `y` is None.
    y : Treebank or iterable of trees, default=None
        Gold trees.
    sample_weight : array-like of float, shape (n_sentences,), default=None
        How often each sentence counts.

    Returns
    -------
    f1 : float
        Between 0 and 1, see :func:`lpcfg_sk.metrics.f1_score`.

    See Also
    --------
    lpcfg_sk.metrics.log_likelihood_scorer : Mean log probability of trees.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lpcfg_sk import MarginEMPCFG, f1_scorer, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> parser = make_parser(MarginEMPCFG())
    >>> search = GridSearchCV(parser, {"learner__s": [1.2, 2.0]}, scoring=f1_scorer,
    ...                       cv=2).fit(load_toy(40))
    >>> bool(search.best_score_ > 0.5)
    True
    """
    # Both the parser and the comparison read X, and an iterator can be read once.
    X = check_treebank(X, estimator="f1_scorer", allow_empty=True)
    gold = check_treebank(X if y is None else y, estimator="f1_scorer", parsed=True)
    if gold.binarized:
        gold = unbinarize(gold)
    return f1_score(gold, estimator.predict(X), sample_weight=sample_weight)


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
