"""Self-training: a parser that learns from trees and from its own parses."""

import tempfile
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk._pipeline import unfrozen
from lpcfg_sk._validation import N_JOBS, HasMethods, Interval, fit_context
from lpcfg_sk._warnings import warn_caller
from lpcfg_sk.exceptions import ParseFailureWarning
from lpcfg_sk.parsing import ParserMixin
from lpcfg_sk.semi_supervised._automatic_trees import (
    AutomaticTrees,
    fit_weighted,
    last_step,
    parse,
    transform,
    use_jobs,
)
from lpcfg_sk.treebank import append_rows, check_sample_weight, check_treebank

__all__ = ["SelfTrainingParser"]


def _student_has(name):
    """Make a condition for :func:`available_if`: the student has a method."""

    def has(self):
        student = self.teacher if self.student is None else self.student
        # The student's AttributeError says why it has no such method.
        student = last_step(getattr(self, "student_", student))
        return getattr(student, name) is not None

    return has


class SelfTrainingParser(ParserMixin, MetaEstimatorMixin, BaseEstimator):
    r"""A parser that learns from trees and from sentences without trees.

    The teacher is fitted to the trees and parses the sentences. The student is fitted
    to both, the automatic trees with a smaller weight. An ensemble as the teacher of
    one grammar, or of itself, is worth more than more members: see "Raw text" in the
    user guide.

    Parameters
    ----------
    teacher : estimator
        Any parser: a pipeline of :func:`make_parser`, a :class:`VotingParser`, or a
        learner. One inside :class:`sklearn.frozen.FrozenEstimator` is not fitted
        again.
    student : estimator, default=None
        The parser to fit to trees and automatic trees; a copy of the teacher where
        None.
    unlabeled_weight : float, default=0.5
        Weight of an automatic tree relative to a tree of `X`; it multiplies the
        ``sample_weight`` of the sentence. 0 leaves the sentences out.
    n_rounds : int, default=1
        How often sentences are parsed. The student of a round is the teacher of the
        next.
    min_confidence : float, default=None
        Automatic trees whose brackets have a smaller mean posterior probability,

        .. math:: \frac{1}{|t|} \sum_{(X, i, j) ∈ t} P(X, i, j),

        are left out. The sum is over the brackets of the tree, without tags, and P is
        from the teacher's ``span_marginals``. This doubles the time of parsing.
    n_jobs : int, default=None
        Number of threads of teachers and students whose own `n_jobs` is None. The
        result does not depend on it.
    verbose : int, default=0
        Whether to report progress on standard error.

    Attributes
    ----------
    student_ : estimator
        The fitted student. Without sentences it is fitted to the trees; where
        `student` is None it is then the teacher itself.
    n_automatic_, n_failed_, n_unsure_ : list of int
        For each round, the number of automatic trees that the student learnt from, of
        sentences without a parse, and of trees below `min_confidence`.

    See Also
    --------
    make_ensemble : Presets, which also learn from sentences.
    EMLPCFG, PCFG : Learn from sentences by expected counts of rules.

    Notes
    -----
    The trees of a :class:`ShardedTreebank` are parsed shard by shard into temporary
    files, so that memory holds only the models and one shard.

    ``score`` counts rows with trees only. In cross-validation shuffle the rows, so
    that each fold has trees: ``KFold(5, shuffle=True, random_state=0)``.

    References
    ----------
    .. [1] McClosky, Charniak and Johnson (2006). Effective self-training for parsing.
       NAACL.
    .. [2] Huang, Harper and Petrov (2010). Self-training with products of latent
       variable grammars. EMNLP.

    Examples
    --------
    >>> from lpcfg_sk import PCFG, SelfTrainingParser, make_parser
    >>> from lpcfg_sk.datasets import load_toy
    >>> trees = load_toy(300)
    >>> X = [*trees[:200], *trees[200:].sentences()]
    >>> parser = SelfTrainingParser(make_parser(PCFG())).fit(X)
    >>> parser.n_automatic_
    [100]
    >>> parser.predict(trees[:2]).sentences() == trees[:2].sentences()
    True
    """

    _parameter_constraints: dict = {
        "teacher": [HasMethods(["fit", "predict"])],
        "student": [HasMethods(["fit", "predict"]), None],
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "min_confidence": [Interval(Real, 0, 1, closed="both"), None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        teacher,
        student=None,
        *,
        unlabeled_weight=0.5,
        n_rounds=1,
        min_confidence=None,
        n_jobs=None,
        verbose=0,
    ):
        self.teacher = teacher
        self.student = student
        self.unlabeled_weight = unlabeled_weight
        self.n_rounds = n_rounds
        self.min_confidence = min_confidence
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, sample_weight=None):
        """Fit the teacher to the trees, and the student to trees and sentences.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees and sentences
            Rows with trees, and rows without.
        y : None
            Ignored.
        sample_weight : array-like of float, shape (n_rows,), default=None
            Weights of trees and sentences.

        Returns
        -------
        self : SelfTrainingParser
        """
        X = check_treebank(X, estimator=self, sharded=True)
        weight = check_sample_weight(sample_weight, X)
        parsed = X.is_parsed
        trees = np.flatnonzero(parsed & (weight > 0))
        sentences = np.flatnonzero(~parsed & (weight > 0))
        frozen = isinstance(self.teacher, FrozenEstimator)
        if not (len(trees) or frozen):
            raise ValueError(
                "SelfTrainingParser needs rows with trees to fit its teacher, and none "
                f"of these {len(X)} rows has one and a weight above 0; add trees, or "
                "pass a fitted teacher as FrozenEstimator(teacher)"
            )
        if self.unlabeled_weight == 0:
            sentences = sentences[:0]
        if len(sentences) and next(iter(X.chunks())).binarized:
            raise ValueError(
                "SelfTrainingParser takes the trees of a treebank as they are, and "
                "these are binarised: parsed sentences would not match them; put the "
                "TreeBinarizer into the teacher, make_parser(...)"
            )
        of_trees = None if sample_weight is None else weight[trees]
        self.n_automatic_, self.n_failed_, self.n_unsure_ = [], [], []
        with use_jobs(self.n_jobs):
            parser = self.teacher
            if self.student is not None and not len(sentences):
                parser = fit_weighted(clone(self.student), X[trees], of_trees)
            elif not frozen:
                parser = fit_weighted(clone(parser), X[trees], of_trees)
            for _ in range(self.n_rounds if len(sentences) else 0):
                parser = self._fit_student(parser, X, trees, sentences, weight)
        self.student_ = unfrozen(parser)
        self._warn()
        return self

    def _fit_student(self, teacher, X, trees, sentences, weight):
        """Parse the sentences, and fit a student to them and the trees."""
        progress = None
        if self.verbose:
            round_number = len(self.n_automatic_) + 1
            progress = f"SelfTrainingParser, round {round_number} of {self.n_rounds}"
        automatic = AutomaticTrees(teacher, X[sentences], self.min_confidence, progress)
        student = unfrozen(self.teacher) if self.student is None else self.student
        with tempfile.TemporaryDirectory(prefix="lpcfg_sk-") as folder:
            both = append_rows(X[trees], automatic, folder)
            used = sentences[np.concatenate(automatic.rows)]
            self.n_automatic_.append(len(used))
            self.n_failed_.append(automatic.n_failed)
            self.n_unsure_.append(automatic.n_unsure)
            if not len(both):
                raise ValueError(
                    "SelfTrainingParser has no tree to fit its student to: the teacher "
                    f"left out all {len(sentences)} sentences, {automatic.n_failed} of "
                    "them without a parse; lower min_confidence or add trees"
                )
            of_both = np.append(weight[trees], self.unlabeled_weight * weight[used])
            return fit_weighted(clone(student), both, of_both)

    def _warn(self):
        n_failed = max(self.n_failed_, default=0)
        if n_failed:
            warn_caller(
                f"up to {n_failed} sentences per round have no parse under the "
                "teacher, and the student did not learn from them",
                ParseFailureWarning,
            )

    @available_if(_student_has("parse_kbest"))
    def parse_kbest(self, X, k=10):
        """Best k trees of each sentence under the student.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        k : int, default=10
            Number of trees.

        Returns
        -------
        parses : list of list of (Tree, float)
            For each sentence its trees with their scores, the best first.
        """
        return self._ask("parse_kbest", X, k)

    @available_if(_student_has("span_marginals"))
    def span_marginals(self, X, *, precise=True):
        """Posterior probabilities of brackets under the student.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        precise : bool, default=True
            Whether to lower the threshold of the pruning by the factor 5e-9.

        Returns
        -------
        frames : list of DataFrame
            One per sentence.
        """
        return self._ask("span_marginals", X, precise=precise)

    @available_if(_student_has("marginals"))
    def marginals(self, X, *, normalize=False):
        """Marginals of the nonterminals of the student's grammar.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        normalize : bool, default=False
            Whether to divide by the probability of the sentence.

        Returns
        -------
        frames : list of DataFrame
            One per sentence.
        """
        return self._ask("marginals", X, normalize=normalize)

    @available_if(_student_has("score_samples"))
    def score_samples(self, X):
        """Log probability of each tree under the student.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Trees.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_trees,)
        """
        return self._ask("score_samples", X)

    @available_if(_student_has("sentence_log_prob"))
    def sentence_log_prob(self, X):
        """Log probability of each sentence under the student.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_sentences,)
        """
        return self._ask("sentence_log_prob", X)

    @available_if(_student_has("sample"))
    def sample(self, n=1, random_state=None):
        """Draw trees from the student's grammar.

        Parameters
        ----------
        n : int, default=1
            Number of trees.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        trees : Treebank
        """
        check_is_fitted(self)
        return last_step(self.student_).sample(n, random_state)

    def _parse(self, X):
        check_is_fitted(self)
        return parse(self.student_, X)

    def _ask(self, method, X, *args, **options):
        """Call a method of the student's last step over sentences as it sees them."""
        check_is_fitted(self)
        X = transform(self.student_, X)
        return getattr(last_step(self.student_), method)(X, *args, **options)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "student_")
