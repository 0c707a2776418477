import pandas as pd
from sklearn.utils.validation import check_is_fitted

__all__ = ["results_table"]

_TIMES = {"mean_fit_time": "fit_time", "mean_score_time": "score_time"}


def results_table(search):
    """Tidy table of a search over hyperparameters.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or HalvingGridSearchCV
        A fitted search.

    Returns
    -------
    table : DataFrame
        One row a candidate, the best first: its parameters under their short names,
        mean and standard deviation of the score over the folds (of each score, where
        there are several), mean times in seconds, and the rank.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lpcfg_sk import CFG, MarginEMPCFG
    >>> from lpcfg_sk.inspection import results_table
    >>> grammar = CFG.from_string("S -> 'a' S | 'b' S | 'c'")
    >>> X = [["a", "c"], ["a", "a", "c"], ["c"], ["b", "c"]] * 3
    >>> search = GridSearchCV(MarginEMPCFG(grammar), {"s": [0.5, 1.5]}, cv=2).fit(X)
    >>> results_table(search)[["s", "mean_score", "rank"]].round(2)
         s  mean_score  rank
    0  1.5       -2.10     1
    1  0.5       -2.12     2
    """
    if not hasattr(search, "cv_results_"):
        check_is_fitted(search)
        raise TypeError(
            "results_table takes a fitted search such as GridSearchCV, got "
            f"{type(search).__name__}"
        )
    results = search.cv_results_
    params = [name for name in results if name.startswith("param_")]
    short = _short_names([name.removeprefix("param_") for name in params])
    table = pd.DataFrame(
        {
            column: list(results[name])
            for name, column in zip(params, short, strict=True)
        }
    )
    ranks = [name for name in results if name.startswith("rank_test_")]
    for rank in ranks:
        score = rank.removeprefix("rank_test_")
        suffix = "" if len(ranks) == 1 else f"_{score}"
        table[f"mean_score{suffix}"] = results[f"mean_test_{score}"]
        table[f"std_score{suffix}"] = results[f"std_test_{score}"]
    for name, column in _TIMES.items():
        table[column] = results[name]
    if "iter" in results:
        table["iteration"] = results["iter"]
    for rank in ranks:
        suffix = "" if len(ranks) == 1 else f"_{rank.removeprefix('rank_test_')}"
        table[f"rank{suffix}"] = results[rank]
    main = "rank" if len(ranks) == 1 else f"rank_{_refit_score(search, ranks)}"
    return table.sort_values(main, kind="stable", ignore_index=True)


def _refit_score(search, ranks):
    known = [rank.removeprefix("rank_test_") for rank in ranks]
    return search.refit if search.refit in known else known[0]


def _short_names(names):
    """Last part of each name, longer where two would be the same."""
    parts = [name.split("__") for name in names]
    for length in range(1, 1 + max((len(p) for p in parts), default=0)):
        short = ["__".join(p[-length:]) for p in parts]
        if len(set(short)) == len(short):
            return short
    return names
