"""The voting parser: minimum Bayes risk under a mixture of grammars."""

from numbers import Real
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metaestimators import _BaseComposition

from lpcfg_sk._parallel import map_chunks
from lpcfg_sk._pipeline import unfrozen
from lpcfg_sk._validation import N_JOBS, Interval, StrOptions, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.ensemble._members import Electorate, prepare
from lpcfg_sk.exceptions import ChartMemoryError
from lpcfg_sk.parsing import (
    BRACKET_PENALTY,
    ON_FAILURE,
    Brackets,
    Parser,
    ParserMixin,
    assemble,
    bracket_frame,
    bracket_trees,
    flat_brackets,
    map_row_ranges,
    map_sentences,
    parse_every_row,
)
from lpcfg_sk.treebank import check_sample_weight, check_treebank

__all__ = ["VotingParser"]

# The last electorate of each parser, made once per fit and settings of the members. Not
# an attribute, which would be pickled.
_ELECTORATES = WeakKeyDictionary()


class VotingParser(ParserMixin, _BaseComposition):
    r"""Several parsers that vote on labelled brackets.

    Each member gives the posterior probabilities :math:`P_k(X, i, j)` of the brackets
    of a sentence over the original labels. The tree is the one that maximises

    .. math:: \sum_{(X, i, j)} \Big( \sum_k w_k P_k(X, i, j) - λ \Big)

    over its brackets: minimum Bayes risk under the mixture. It need not be a tree of
    any one grammar.
    Members may have any binarisation, and any number of latent states.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Members: parsers as :func:`make_parser` gives them. ``"drop"`` leaves one out;
        one inside :class:`sklearn.frozen.FrozenEstimator` is not fitted again.
    weights : list of float, default=None
        Weights of the votes; equal ones where None. A weight of zero leaves a member
        out.
    bracket_penalty : float, default=0.43
        A bracket must have more than this share λ of the votes. About half of the
        expected F1 is a good value.
    on_failure : {"flat", "raise", "skip"}, default="flat"
        What :meth:`predict` does about a sentence that no member parses within its
        ``max_memory``: give it a flat tree, raise an error, or leave it without a
        tree. Members whose chart does not fit do not vote; with "raise" this is an
        error, too.
    n_jobs : int, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    estimators_ : list of estimator
        Fitted members, without the dropped ones.
    named_estimators_ : Bunch
        The same by name.

    See Also
    --------
    make_ensemble : Ready ensembles.

    Examples
    --------
    >>> from lpcfg_sk import EMLPCFG, PCFG, VotingParser, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> trees = load_toy(700)
    >>> vote = VotingParser([
    ...     ("right", make_parser(PCFG())),
    ...     ("left", make_parser(PCFG(), direction="left")),
    ... ]).fit(trees[:600])
    >>> len(vote.predict(trees[600:]))
    100
    """

    _parameter_constraints: dict = {
        "estimators": [list],
        "weights": ["array-like", None],
        "bracket_penalty": [Interval(Real, 0, 1, closed="both")],
        "on_failure": [StrOptions(set(ON_FAILURE))],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        estimators,
        *,
        weights=None,
        bracket_penalty=BRACKET_PENALTY,
        on_failure="flat",
        n_jobs=None,
    ):
        self.estimators = estimators
        self.weights = weights
        self.bracket_penalty = bracket_penalty
        self.on_failure = on_failure
        self.n_jobs = n_jobs

    def get_params(self, deep=True):
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include those of the members, as ``name__parameter``.

        Returns
        -------
        params : dict
            Parameters and their values.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params):
        """Set parameters, members by name, or parameters of members.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        self : VotingParser
        """
        self._set_params("estimators", **params)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, sample_weight=None):
        """Fit all members; preprocessing that members share is fitted once.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees
            Trees.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_trees,), default=None
            Weights of the trees, for all members.

        Returns
        -------
        self : VotingParser
        """
        members = self._members()
        fresh = [(name, est) for name, est in members if unfrozen(est) is est]
        fitted = {name: unfrozen(est) for name, est in members}
        if fresh:
            X = check_treebank(X, estimator=self, parsed=True, sharded=True)
            weights = {}
            if sample_weight is not None:
                weights["sample_weight"] = check_sample_weight(sample_weight, X)
            jobs = [(*part, weights) for part in prepare([est for _, est in fresh], X)]
            trained = map_chunks(_fit_learner, jobs, n_jobs=self.n_jobs)
            for (name, _), member in zip(fresh, trained, strict=True):
                fitted[name] = member
        self.estimators_ = [fitted[name] for name, _ in members]
        self.named_estimators_ = Bunch(**fitted)
        return self

    def _members(self):
        if not self.estimators:
            raise ValueError("VotingParser needs at least one (name, parser) member")
        for number, member in enumerate(self.estimators):
            if not (
                isinstance(member, tuple | list)
                and len(member) == 2
                and isinstance(member[0], str)
            ):
                raise TypeError(
                    "the members of VotingParser are pairs (name, parser), such as "
                    f"('pcfg', make_parser(PCFG())); member {number} is "
                    f"{type(member).__name__}"
                )
        names = [name for name, _ in self.estimators]
        self._validate_names(names)
        members = [(n, e) for n, e in self.estimators if not _is_drop(e)]
        if not members:
            raise ValueError("all members are dropped; at least one must stay")
        for name, member in members:
            parses = hasattr(member, "fit") and hasattr(member, "predict")
            if not parses or get_tags(member).estimator_type is not None:
                raise TypeError(
                    f"member {name!r} is no parser; use make_parser(...), a learner, "
                    "or 'drop'"
                )
        self._shares()
        return members

    def _shares(self):
        """Weights of the members that are not dropped, adding up to one."""
        kept = [not _is_drop(e) for _, e in self.estimators]
        if self.weights is None:
            return np.full(sum(kept), 1 / sum(kept))
        weights = np.asarray(self.weights, dtype=float)
        if weights.shape != (len(kept),):
            raise ValueError(
                f"weights has shape {weights.shape}, expected one weight for each "
                f"of the {len(kept)} members"
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("weights are finite and not negative")
        weights = weights[kept]
        if not weights.any():
            raise ValueError("all members have weight zero")
        return weights / weights.sum()

    def _ballot(self, X, *, quick=False):
        shares = self._shares()
        if len(shares) != len(self.estimators_):
            raise ValueError(
                f"estimators was changed after fit: {len(self.estimators_)} members "
                f"were fitted, now there are {len(shares)}; fit again"
            )
        voters = [e for e, share in zip(self.estimators_, shares, strict=True) if share]
        electorate = _ELECTORATES.get(self)
        if electorate is None or not electorate.is_of(voters):
            electorate = _ELECTORATES[self] = Electorate(voters)
        return _Ballot(
            electorate,
            shares[shares > 0],
            X,
            quick=quick,
            strict=self.on_failure == "raise",
        )

    def _parse(self, X):
        X = self._check_sentences(X)

        def parse(treebank, n_jobs):
            ballot = self._ballot(treebank, quick=True)

            def tree(row):
                brackets, left_out = ballot.count(row)
                if brackets is None and ballot.widen(row):
                    brackets, left_out = ballot.count(row)
                if brackets is None:
                    return ballot.flat_tree(row), left_out
                (nodes,) = bracket_trees(ballot.table, brackets, self.bracket_penalty)
                return nodes, left_out

            def trees_of(begin, end):
                brackets, voted = ballot.count_rows(begin, end)
                if brackets is None:
                    return [tree(row) for row in range(begin, end)]
                nodes = bracket_trees(ballot.table, brackets, self.bracket_penalty)
                rows = zip(range(begin, end), nodes, voted, strict=True)
                # Rows on which some member did not vote are counted one by one.
                return [(x, []) if every else tree(row) for row, x, every in rows]

            rows = map_row_ranges(trees_of, treebank, n_jobs=n_jobs)
            names = (*ballot.table.names, *ballot.table.tag_names)
            nodes = [nodes for nodes, _ in rows]
            trees = assemble(treebank.unparsed(), names, nodes, binarized=False)
            n_silent = [len(left_out) for _, left_out in rows]
            failed = [row for row, n in enumerate(n_silent) if n == ballot.n]
            remarks = {
                row: f"{n} of {ballot.n} members had no usable parse and did not vote"
                for row, n in enumerate(n_silent)
                if 0 < n < ballot.n
            }
            for row in ballot.unfit.intersection(failed):
                remarks[row] = "the charts of the members do not fit their max_memory"
            return trees, failed, remarks

        return parse_every_row(X, parse, on_failure=self.on_failure, n_jobs=self.n_jobs)

    def span_marginals(self, X, *, precise=True):
        """Mean posterior probabilities of the brackets over all members.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        precise : bool, default=True
            Whether to lower the threshold of the pruning by the factor 5e-9. Without
            it the values are those by which :meth:`predict` chooses brackets.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal and tag;
            without rows for a sentence that no member parses.
        """
        X = self._check_sentences(X)
        ballot, lengths = self._ballot(X, quick=not precise), X.lengths

        def frame(row):
            brackets, _ = ballot.count(row) if lengths[row] else (None, ())
            return bracket_frame(ballot.table, brackets)

        frames = map_sentences(frame, X, n_jobs=self.n_jobs)
        for _, charts in ballot.groups:
            charts[0].warn_of_memory()
        if ballot.unfit:
            warn_caller(
                f"on {len(ballot.unfit)} of {len(X)} sentences the charts of some "
                "members do not fit their max_memory; these members are left out",
                RuntimeWarning,
            )
        return frames

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimators_")


class _Ballot:
    """Counts the votes of the members on the sentences of a treebank."""

    def __init__(self, electorate, shares, X, *, quick=False, strict=False):
        self.n = len(shares)
        self.strict = strict
        self.unfit = set()
        self.shares = shares
        self.electorate = electorate
        self.table = electorate.table
        groups = electorate.groups
        self.groups = [(group, group.charts(X, quick=quick)) for group in groups]

    def count(self, row):
        """Return the weighted mean of the brackets, and the members without a vote."""
        parts, left_out = [], []
        for group, group_charts in self.groups:
            members = zip(group.numbers, group.parsers, group_charts, strict=True)
            pruned = self._if_it_fits(row, group_charts[0].pruned)
            for number, parser, charts in members:
                brackets = pruned and self._if_it_fits(
                    row, parser.bracket_marginals, charts, pruned=pruned
                )
                if brackets is None:
                    left_out.append(number)
                else:
                    parts.append((number, brackets))
        if not parts:
            return None, left_out
        return self._mean(sorted(parts, key=lambda part: part[0])), left_out

    def widen(self, row):
        """Let a row's words be open-class words, too; return whether they can be."""
        charts = [one for _, group_charts in self.groups for one in group_charts]
        return any([one.widen(row) for one in charts])

    def _if_it_fits(self, row, func, *args, **options):
        """Call a function of charts; None where they take too much memory."""
        try:
            return func(*args, row, **options)
        except ChartMemoryError:
            if self.strict:
                raise
            self.unfit.add(row)
            return None

    def count_rows(self, begin, end):
        """Count the votes on a range of rows together.

        Returns
        -------
        brackets : Brackets or None
            Weighted mean of the brackets; None where charts are not pruned.
        voted : ndarray of bool
            Rows on which all members voted; the brackets of others are not complete.
        """
        parts, voted = [], np.ones(end - begin, dtype=bool)
        for group, group_charts in self.groups:
            if not group_charts[0].model.pruner.threshold:
                return None, None
            pruned = group_charts[0].pruned_rows(begin, end)
            members = zip(group.numbers, group.parsers, group_charts, strict=True)
            for number, parser, charts in members:
                brackets, found = parser.brackets_of_rows(charts, begin, end, pruned)
                parts.append((number, brackets))
                voted &= found
        return self._mean(sorted(parts, key=lambda part: part[0])), voted

    def flat_tree(self, row):
        """Nodes of a flat tree for a sentence that no member parses."""
        group, charts = self.groups[0]
        nodes = flat_brackets(group.parsers[0].brackets, *charts[0].last_resort(row))
        brackets = self.electorate.brackets[group.numbers[0]]
        tags = self.electorate.tags[group.numbers[0]] + len(self.table.names)
        nodes[0] = np.concatenate([brackets, tags])[nodes[0]]
        return nodes

    def _mean(self, parts):
        total = sum(self.shares[number] for number, _ in parts)
        n_words, row_span = parts[0][1][:2]
        n_spans = row_span[-1]
        n_brackets = len(self.table.names)
        tag_weight = np.zeros((n_words.sum(), len(self.table.tag_names)))
        keys, weights, depths = [], [], []
        for number, part in parts:
            share = self.shares[number] / total
            span = np.repeat(np.arange(n_spans), np.diff(part.offset))
            keys.append(
                span * n_brackets + self.electorate.brackets[number][part.bracket]
            )
            weights.append(share * part.weight)
            # A bracket without weight has no depth.
            depths.append(np.where(part.weight > 0, part.depth, 0.0))
            # Several tags of a member may be one tag of the table.
            tags = self.electorate.tags[number]
            np.add.at(tag_weight.T, tags, share * part.tag_weight.T)
        key, place = np.unique(np.concatenate(keys), return_inverse=True)
        weight = np.concatenate(weights)
        mean = np.bincount(place, weights=weight, minlength=len(key))
        depth = np.bincount(
            place, weights=weight * np.concatenate(depths), minlength=len(key)
        )
        span, bracket = np.divmod(key, max(n_brackets, 1))
        return Brackets(
            n_words,
            row_span,
            np.searchsorted(span, np.arange(n_spans + 1)).astype(np.int64),
            bracket.astype(np.int32),
            mean,
            depth / np.where(mean > 0, mean, 1.0),
            tag_weight,
        )


def _fit_learner(steps, learner, treebank, weights):
    learner.fit(treebank, **weights)
    return Parser([*steps, ("learner", learner)]) if steps else learner


def _is_drop(estimator):
    return isinstance(estimator, str) and estimator == "drop"
