"""Common checks of estimators over trees, modelled on those of scikit-learn.

``sklearn.utils.estimator_checks`` shrinks to a single check for estimators that do
not take arrays. :func:`tree_checks` yields those of its checks that need no data,
and tree versions of the others; every estimator of the library runs through it.
"""

import copy
import inspect
import pickle
import warnings
from functools import partial

import joblib
import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.treebank import Treebank, concatenate

__all__ = ["tree_checks"]

# Checks of scikit-learn that need only the estimator. Those that an older scikit-learn
# does not have are skipped there.
_SKLEARN_CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_mixin_order",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
)

_ROWWISE = ("transform", "predict", "score_samples", "sentence_log_prob")
_METHODS = (*_ROWWISE, "score")


def tree_checks(estimator, X, *, skip=()):
    """Yield the common checks of an estimator over trees.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance; set small sizes and few iterations.
    X : Treebank
        At least eight trees of the kind that the estimator takes.
    skip : collection of str, default=()
        Names of checks that do not apply.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        Takes no argument, raises AssertionError where the check fails.

    Examples
    --------
    >>> from lpcfg_sk import RareWords, Treebank
    >>> from lpcfg_sk.testing import tree_checks
    >>> X = Treebank(["(S (NP a) (VP b))", "(S (NP c) (VP d))"] * 4)
    >>> for name, check in tree_checks(RareWords(min_count=2), X):
    ...     check()
    """
    unknown = set(skip) - {c.__name__ for c in _TREE_CHECKS} - set(_SKLEARN_CHECKS)
    if unknown:
        raise ValueError(f"no such checks: {sorted(unknown)}")
    for name in _SKLEARN_CHECKS:
        if name not in skip and hasattr(estimator_checks, name):
            yield name, partial(_sklearn_check, name, estimator)
    for check in _TREE_CHECKS:
        if check.__name__ not in skip:
            yield check.__name__, partial(_quietly, check, estimator, X)


def _sklearn_check(name, estimator):
    if name == "check_parameters_default_constructible":
        estimator = type(estimator)()
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))


def _quietly(check, estimator, X):
    with warnings.catch_warnings():
        # Few iterations on toy data do not converge and do not parse everything.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ParseFailureWarning)
        check(estimator, X)


def _fitted(estimator, X, **params):
    return clone(estimator).set_params(**params).fit(X)


def _methods(estimator, names=_METHODS):
    return [name for name in names if hasattr(estimator, name)]


def _takes_weights(estimator):
    return "sample_weight" in inspect.signature(estimator.fit).parameters


def _assert_same_results(one, two, X, convert=lambda X: X):
    for name in _methods(one):
        _assert_same(getattr(one, name)(X), getattr(two, name)(convert(X)), name)


def _assert_same(one, two, what, rtol=0.0, atol=0.0):
    """Equal results; to the bit where rtol and atol are zero."""
    if isinstance(one, Treebank):
        assert one == two, f"{what}: other trees"
        np.testing.assert_array_equal(
            [one.words[i] for i in one.word], [two.words[i] for i in two.word]
        )
        assert set(one.blocks) == set(two.blocks), f"{what}: other blocks"
        for name, block in one.blocks.items():
            _assert_same(block, two.blocks[name], f"{what}, {name}", rtol, atol)
        return
    if scipy.sparse.issparse(one):
        one, two = one.toarray(), two.toarray()
    np.testing.assert_allclose(one, two, rtol=rtol, atol=atol, err_msg=what)


def check_fit_returns_self(estimator, X):
    """``fit(X)`` and ``fit(X, None)`` return the estimator."""
    model = clone(estimator)
    assert model.fit(X) is model
    assert clone(estimator).fit(X, None) is not None


def check_fitted_names(estimator, X):
    """Fit sets attributes that end in an underscore, and no others."""
    model = clone(estimator)
    before = set(vars(model))
    model.fit(X)
    new = set(vars(model)) - before
    wrong = [n for n in new if not (n.endswith("_") or n.startswith("_"))]
    assert not wrong, f"fit sets {wrong} without a trailing underscore"
    check_is_fitted(model)


def check_not_fitted(estimator, X):
    """Everything but fit raises NotFittedError before fit."""
    for name in _methods(estimator):
        model = clone(estimator)
        try:
            getattr(model, name)(X)
        except NotFittedError:
            continue
        if model.__sklearn_tags__().requires_fit:
            raise AssertionError(f"{name} works before fit")


def check_parameters_kept(estimator, X):
    """Fit does not change the parameters or X."""
    model = clone(estimator)
    params, data = copy.deepcopy(model.get_params()), joblib.hash(X)
    model.fit(X)
    after = model.get_params()
    assert params.keys() == after.keys()
    for name, value in params.items():
        if not hasattr(value, "get_params"):
            assert joblib.hash(value) == joblib.hash(after[name]), name
    assert joblib.hash(X) == data, "fit changed X"


def check_methods_are_pure(estimator, X):
    """Predicting, scoring and transforming do not change the model or X."""
    model = _fitted(estimator, X)
    state, data = joblib.hash(model.__getstate__()), joblib.hash(X)
    for name in _methods(model):
        getattr(model, name)(X)
        assert joblib.hash(model.__getstate__()) == state, f"{name} changed the model"
    assert joblib.hash(X) == data


def check_refit(estimator, X):
    """A second fit forgets the first."""
    once = _fitted(estimator, X)
    twice = _fitted(estimator, X[: len(X) // 2]).fit(X)
    _assert_same_results(once, twice, X)


def check_rows_are_independent(estimator, X):
    """The result of a row depends neither on other rows nor on their order."""
    model = _fitted(estimator, X)
    order = np.random.default_rng(0).permutation(len(X))
    for name in _methods(model, _ROWWISE):
        method = getattr(model, name)
        whole = method(X)
        _assert_same(method(X[order]), whole[order], f"{name}, permuted")
        half = len(X) // 2
        _assert_same(method(X[:half]), whole[:half], f"{name}, half")
        _assert_same(method(X[[1]]), whole[[1]], f"{name}, one row")


def check_pickle(estimator, X):
    """A pickled model gives the same results."""
    model = _fitted(estimator, X)
    copied = pickle.loads(pickle.dumps(model))
    _assert_same_results(model, copied, X)


def check_clone_forgets(estimator, X):
    """A clone of a fitted model is not fitted and fits to the same."""
    model = _fitted(estimator, X)
    fresh = clone(model)
    assert set(vars(fresh)) == set(vars(clone(estimator)))
    fresh.fit(X)
    _assert_same_results(model, fresh, X)


def check_list_of_trees(estimator, X, convert=Treebank.tolist):
    """A list of trees is accepted in place of a treebank without further data."""
    if not (X.blocks or X.binarized or X.words is not X.tokens):
        model, other = _fitted(estimator, X), _fitted(estimator, convert(X))
        _assert_same_results(model, other, X, convert)
        if hasattr(model, "fit_transform"):
            transformed = clone(estimator).fit_transform(convert(X))
            _assert_same(model.transform(X), transformed, "fit_transform")


def check_iterator_of_trees(estimator, X):
    """An iterator of trees is accepted, and read once."""
    check_list_of_trees(estimator, X, iter)


def check_bad_input(estimator, X):
    """Input that is not a treebank raises an error before a kernel runs."""
    model = _fitted(estimator, X)
    for bad in (np.zeros((3, 2)), 3, "(S (NP a))", None, X[:0]):
        methods = [getattr(model, name) for name in _methods(model)]
        for method in (clone(estimator).fit, *methods):
            if isinstance(bad, Treebank) and method.__name__ != "fit":
                continue
            try:
                method(bad)
            except (TypeError, ValueError) as error:
                module = type(error).__module__
                assert not module.startswith("numba"), f"numba error for {bad!r}"
                assert str(error), "an error without a message"
                continue
            raise AssertionError(f"{method.__name__} accepts {type(bad).__name__}")


def check_n_jobs(estimator, X):
    """The number of jobs does not change a bit."""
    if "n_jobs" not in estimator.get_params():
        return
    one, two = _fitted(estimator, X, n_jobs=1), _fitted(estimator, X, n_jobs=2)
    _assert_same_results(one, two, X)


def check_sample_weight_is_repetition(estimator, X):
    """Integer weights mean repeated trees, a weight of zero means absence."""
    if not _takes_weights(estimator):
        return
    weights = np.arange(len(X)) % 3
    repeated = concatenate([X[np.repeat(np.arange(len(X)), weights)]])
    weighted = clone(estimator).fit(X, sample_weight=weights.astype(float))
    plain = clone(estimator).fit(repeated)
    if hasattr(weighted, "score_samples"):
        one, two = weighted.score_samples(repeated), plain.score_samples(repeated)
        _assert_same(one, two, "score_samples", rtol=1e-6, atol=1e-8)


def check_bad_sample_weight(estimator, X):
    """Invalid weights raise an error."""
    if not _takes_weights(estimator):
        return
    one = np.ones(len(X))
    for weights in (np.ones(len(X) + 1), -one, np.nan * one, 0 * one):
        try:
            clone(estimator).fit(X, sample_weight=weights)
        except ValueError as error:
            assert "sample_weight" in str(error)
        else:
            raise AssertionError(f"fit accepts sample_weight={weights[:3]}...")


def check_unseen_symbols(estimator, X):
    """Unknown words and labels are handled."""
    model = _fitted(estimator, X)
    tokens = Treebank([["never", "seen", "words"], X.sentences()[0]])
    for name in _methods(model, ("predict", "sentence_log_prob")):
        assert len(getattr(model, name)(tokens)) == 2
    if hasattr(model, "predict"):
        assert model.predict(tokens).sentences() == tokens.sentences()


def check_scores_are_numbers(estimator, X):
    """Scores are finite floats, and log probabilities are never nan."""
    model = _fitted(estimator, X)
    if hasattr(model, "score"):
        score = model.score(X)
        assert isinstance(score, float) and np.isfinite(score)
    if hasattr(model, "score_samples"):
        scores = model.score_samples(X)
        assert scores.shape == (len(X),)
        assert not np.isnan(scores).any()


def check_pipeline_and_search(estimator, X):
    """Pipelines, cross-validation and grid search take the estimator."""
    pipe = Pipeline([("last", clone(estimator))]).fit(X)
    if not hasattr(estimator, "score"):
        assert len(pipe.transform(X)) == len(X)
        return
    assert len(cross_val_score(pipe, X, cv=2)) == 2
    name, value = next(iter(estimator.get_params(deep=False).items()))
    search = GridSearchCV(pipe, {f"last__{name}": [value]}, cv=2).fit(X)
    assert search.best_index_ == 0


# The checks of this module, in the order of their definition.
_TREE_CHECKS = [
    value
    for name, value in list(globals().items())
    if name.startswith("check_") and value.__module__ == __name__
]
