"""Parsing and sampling with a fitted context-free grammar."""

from itertools import islice
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import lpcfg_sk
from lpcfg_sk._kernels._chart_spans import span_bounds
from lpcfg_sk._ragged import offsets
from lpcfg_sk._validation import check_count
from lpcfg_sk.cfg._binary_normal_form import BinaryNormalForm
from lpcfg_sk.cfg._conversion import (
    binary_lpcfg,
    encoded_lpcfg,
    is_binary,
    without_literals,
)
from lpcfg_sk.cfg._derivations import (
    best_trees,
    check_probabilities,
    constituent_counts,
    encode,
    flat_tree,
    treebank_from_nodes,
)
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.treebank import Treebank, TreebankInputMixin, unbinarize

# The last parser of each model, with the objects it was made of. Not an attribute of
# the model: attributes are pickled, stored in model files, and compared.
_PARSERS = WeakKeyDictionary()

# Decoders of charts for right-hand sides of any length.
_DECODERS_BY_RULES = ("auto", "viterbi", "max-marginal")


class CFGParserMixin(TreebankInputMixin):
    """Methods of a model with ``grammar_``, a CFG, and ``theta_``, its probabilities.

    The model has the parameters `decoder`, `prune`, `max_memory` and `n_jobs`. Trees
    of a :class:`TreeBinarizer` are parsed by the charts that all learners of L-PCFGs
    share, other grammars by charts for right-hand sides of any length.
    """

    def predict(self, X, *, return_status=False):
        """Parse the sentence of each row.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Trees are taken for their yields.
        return_status : bool, default=False
            Whether to return the status of each row as well.

        Returns
        -------
        trees : Treebank
            One tree per row over the original tokens, not binarised. An empty row
            stays empty; `on_failure` decides about other rows without a derivation.
        status : DataFrame, only if `return_status`
            One row per sentence with the columns ``status`` ("parsed", "coarser",
            "flat", "skipped" or "empty") and ``reason``.

        Warns
        -----
        ParseFailureWarning
            If sentences did not get the tree asked for; one warning for all of them,
            and none with `return_status`.
        """
        trees, report = self._parse(X)
        if return_status:
            return trees, report.frame()
        report.warn()
        return trees

    def _parse(self, X):
        """Return the trees, and a report on the status of each row."""
        X = self._check_sentences(X, sharded=True)
        coarser = tuple
        if not self._binarized and self.decoder in _DECODERS_BY_RULES:
            parse, flat = self._predict_by_rules, self._flat_trees
        else:
            parser = self._parser()
            parse, flat, coarser = parser.predict, parser.flat_trees, parser.coarser
        return lpcfg_sk.parsing.parse_every_row(
            X,
            parse,
            coarser=coarser,
            flat=flat,
            on_failure=self.on_failure,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _flat_trees(self, X):
        """Return trees of the start symbol over all words."""
        start = self.grammar_.tables().start
        trees = [flat_tree(start, n) for n in X.lengths.tolist()]
        return treebank_from_nodes(X, trees, self.grammar_.nonterminals)

    def _predict_by_rules(self, X, n_jobs=None):
        decoder = "viterbi" if self.decoder == "auto" else self.decoder
        trees, failed = [], []
        start = self.grammar_.tables().start
        for row, (label, size, parent) in enumerate(
            best_trees(
                self.grammar_,
                X,
                self._probabilities(),
                decoder,
                max_memory=self.max_memory,
            )
        ):
            if len(label) == 0:
                failed.append(row)
                label, size, parent = flat_tree(start, int(X.lengths[row]))
            elif self.grammar_.implicit_start:
                label, size, parent = label[1:], size[1:], parent[1:] - 1
            trees.append((label, size, parent))
        return treebank_from_nodes(X, trees, self.grammar_.nonterminals), failed

    def parse_kbest(self, X, k=10):
        """Best k trees of each sentence.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        k : int, default=10
            Number of trees; a sentence with fewer derivations has fewer.

        Returns
        -------
        parses : list of list of (Tree, float)
            For each sentence its trees, not binarised, the best first, each with the
            log probability of its derivation; none for a sentence without one.

        Raises
        ------
        ValueError
            If the unary rules of the grammar have a cycle.
        """
        k = check_count("k", k, 1)
        X = self._check_sentences(X)
        parses = [[] for _ in range(len(X))]
        known = self._known_rows(X)
        parser = self._parser()
        if parser.grammar.arrays.n_states.max(initial=1) > 1:
            # With states, trees would be ranked by posteriors of rules instead.
            theta = self._probabilities()
            parser = self._make_parser(
                encoded_lpcfg(self.grammar_, theta, literals=True)
            )
        ranked_trees = parser.parse_kbest(
            X[known], k, lenient=self._lenient, n_jobs=self.n_jobs
        )
        for row, ranked in zip(known.tolist(), ranked_trees, strict=True):
            trees = without_literals(Treebank([tree for tree, _ in ranked]))
            scores = [score for _, score in ranked]
            parses[row] = list(zip(trees, scores, strict=True))
        return parses

    def _known_rows(self, X):
        """Rows without unknown words, for which charts would guess tags."""
        unknown = np.flatnonzero(encode(self.grammar_, X) < 0)
        rows = np.searchsorted(X.token_offsets, unknown, side="right") - 1
        return np.setdiff1d(np.flatnonzero(X.lengths > 0), rows)

    def marginals(self, X, *, normalize=False):
        """Marginals μ(a, i, j) of the nonterminals of the grammar.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        normalize : bool, default=False
            Whether to divide by the probability of the sentence, which makes them
            expected numbers of constituents, at most 1 without cycles of unary rules.
            The undivided ones underflow for long sentences.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal, and rows for
            the constituents that derivations of the sentence have; after a
            :class:`TreeBinarizer`, those that pruning leaves.
        """
        X = self._check_sentences(X)
        if self._binarized:
            charts = self._parser().charts(
                X, open_class=False, precise=True, lenient=self._lenient
            )
            return lpcfg_sk.parsing.chart_marginals(
                charts, normalize=normalize, n_jobs=self.n_jobs
            )
        names = np.array(self.grammar_.nonterminals, dtype=object)
        hidden = self.grammar_.tables().start if self.grammar_.implicit_start else -1
        frames = []
        for n, (log_probability, counts) in zip(
            X.lengths.tolist(),
            constituent_counts(
                self.grammar_, X, self._probabilities(), max_memory=self.max_memory
            ),
            strict=True,
        ):
            span, label = np.nonzero(counts)
            span, label = span[label != hidden], label[label != hidden]
            start, end = span_bounds(n)
            order = np.lexsort((label, -end[span], start[span]))
            span, label = span[order], label[order]
            scale = 1.0 if normalize else np.exp(log_probability)
            columns = {
                "label": pd.array(names[label], dtype="string"),
                "start": start[span],
                "end": end[span],
                "marginal": counts[span, label] * scale,
            }
            frames.append(pd.DataFrame(columns))
        return frames

    def span_marginals(self, X, *, precise=True):
        """Posterior probabilities of brackets over the original labels.

        Parameters
        ----------
        X : Treebank or iterable of trees or sentences
            Only the words are parsed.
        precise : bool, default=True
            Whether to lower the threshold of the pruning by the factor 5e-9.

        Returns
        -------
        frames : list of DataFrame
            One per sentence, with the columns label, start, end, marginal, and tag,
            which is True for the tag of a word.

        Raises
        ------
        ValueError
            If the unary rules of the grammar have a cycle.
        """
        X = self._check_sentences(X)
        return self._parser().span_marginals(
            X, lenient=self._lenient, precise=precise, n_jobs=self.n_jobs
        )

    def sample(self, n=1, random_state=None, *, max_nodes=1_000_000):
        """Draw trees from the grammar.

        Parameters
        ----------
        n : int, default=1
            Number of trees.
        random_state : int, RandomState instance or None, default=None
            Source of randomness. The first trees of a larger sample are those of a
            smaller one.
        max_nodes : int, default=1_000_000
            Limit on the size of one tree; a grammar whose expected tree is infinite
            would not end otherwise.

        Returns
        -------
        trees : Treebank
            Trees, not binarised.

        Raises
        ------
        ValueError
            If a tree grows beyond `max_nodes`.
        """
        check_is_fitted(self)
        n = check_count("n", n, 0)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        grammar = self.grammar_
        trees = list(
            islice(_draw_trees(grammar, self._probabilities(), rng, max_nodes), n)
        )
        label, size, parent, word = (
            np.array([x for tree in trees for x in tree[i]], dtype=np.int64)
            for i in range(4)
        )
        node_offsets = offsets([len(tree[0]) for tree in trees])
        trees = Treebank.from_columns(
            label=label,
            size=size,
            parent=parent,
            node_offsets=node_offsets,
            token=word[word >= 0],
            token_offsets=offsets(word >= 0)[node_offsets],
            labels=grammar.nonterminals,
            tokens=grammar.terminals,
        )
        return unbinarize(trees) if self._binarized else trees

    # -- conversions -------------------------------------------------------------

    def to_lpcfg(self):
        """Return the L-PCFG in which trees have the same probabilities.

        Returns
        -------
        grammar : LPCFG
            Over the labels of the grammar where its rules are binary, as after a
            :class:`TreeBinarizer`. Other trees are written as a TreeBinarizer writes
            them: :func:`~lpcfg_sk.treebank.unbinarize` restores them.

        Raises
        ------
        ValueError
            If the unary rules of the grammar have a cycle: a sentence then has
            infinitely many trees.

        Examples
        --------
        >>> from lpcfg_sk import CFG, MarginEMPCFG
        >>> grammar = CFG.from_string("S -> 'a' S | 'b'")
        >>> model = MarginEMPCFG(grammar).fit([["a", "b"], ["b"], ["a", "a", "b"]])
        >>> lpcfg = model.to_lpcfg()
        >>> lpcfg.is_probabilistic
        True
        >>> sentence = [["a", "b"]]
        >>> bool(abs(lpcfg.sentence_log_prob(sentence)[0]
        ...          - model.sentence_log_prob(sentence)[0]) < 1e-12)
        True
        """
        check_is_fitted(self)
        make = binary_lpcfg if is_binary(self.grammar_) else encoded_lpcfg
        return make(self.grammar_, self._probabilities())

    def to_wta(self):
        """Return the weighted tree automaton with the values of :meth:`to_lpcfg`.

        Returns
        -------
        wta : WTA

        Examples
        --------
        >>> from lpcfg_sk import CFG, MarginEMPCFG
        >>> grammar = CFG.from_string("S -> 'a' S | 'b'")
        >>> model = MarginEMPCFG(grammar).fit([["a", "b"], ["b"], ["a", "a", "b"]])
        >>> model.to_wta().words
        ('a', 'b')
        """
        return self.to_lpcfg().to_wta()

    def to_binary_normal_form(self):
        """Return the binary normal form in the order of the model's own chains.

        In this order, which is that of ``binomials_``, every binomial of
        ``form.to_binary(model.theta_)`` is in [γ, 1 - γ]. In the order of the grammar
        (:meth:`CFG.to_binary_normal_form`) it need not be.

        Returns
        -------
        form : BinaryNormalForm

        Examples
        --------
        >>> from lpcfg_sk import CFG, MarginEMPCFG
        >>> grammar = CFG.from_string("S -> 'a' | 'b' | 'c'")
        >>> model = MarginEMPCFG(grammar, gamma=0.1).fit([["c"]] * 9 + [["b"]])
        >>> model.to_binary_normal_form().to_binary(model.theta_).round(3)
        S -> 'c'     0.9
        S -> S1      0.1
        S1 -> 'b'    0.9
        S1 -> S2     0.1
        S2 -> 'a'    1.0
        dtype: float64
        """
        check_is_fitted(self)
        place = {str(rule): i for i, rule in enumerate(self.grammar_.rules)}
        order = [place[name] for name in self.binomials_["rule"]]
        return BinaryNormalForm(self.grammar_, order)

    def _probabilities(self):
        """Return the probabilities of the rules, which compiled loops rely on."""
        theta = self.theta_.to_numpy(dtype=np.float64)
        check_probabilities(theta, len(self.grammar_.rules))
        return theta

    @property
    def coarse_(self):
        """The plain PCFG that prunes charts: the grammar itself."""
        return self._parser().grammar

    @property
    def _lenient(self):
        return self.on_failure != "raise"

    @property
    def _binarized(self):
        """Whether predicted trees are restored; old model files do not say."""
        return getattr(self, "binarized_", False)

    def _parser(self):
        """Return the parser of the L-PCFG, made once for the same probabilities."""
        check_is_fitted(self)
        theta = self._probabilities()
        settings = (self.grammar_, self.decoder, self.prune, self.max_memory)
        known, known_theta, parser = _PARSERS.get(self, (None, None, None))
        if known == settings and np.array_equal(known_theta, theta):
            return parser
        # Parameters may have been set since the fit checked them.
        self._validate_params()
        parser = self._make_parser(self.to_lpcfg())
        _PARSERS[self] = settings, theta.copy(), parser
        return parser

    def _make_parser(self, grammar):
        return lpcfg_sk.parsing.ChartParser(
            grammar,
            grammar,
            binarized=self._binarized or not is_binary(self.grammar_),
            decoder=self.decoder,
            prune=self.prune if self._binarized else None,
            max_memory=self.max_memory,
        )


def _draw_trees(grammar, theta, rng, max_nodes):
    """Yield label, size, parent and word of the nodes of random trees, in preorder."""
    n_nonterminals = len(grammar.nonterminals)
    label = {name: i for i, name in enumerate(grammar.nonterminals)}
    word = {name: n_nonterminals + i for i, name in enumerate(grammar.terminals)}
    sides = [
        [(word if t else label)[s] for s, t in zip(r.rhs, r.terminal, strict=True)]
        for r in grammar.rules
    ]
    rules = list(rules_by_lhs(grammar.rules).values())
    cumulative = [np.cumsum(theta[group]) for group in rules]

    def draw_side(symbol):
        sums = cumulative[symbol]
        place = np.searchsorted(sums, rng.random() * sums[-1], "right")
        return sides[rules[symbol][min(place, len(sums) - 1)]]

    start = label[grammar.start]
    while True:
        labels, parents, words = [], [], []
        agenda = [(draw_side(start)[0] if grammar.implicit_start else start, -1)]
        while agenda:
            symbol, above = agenda.pop()
            parents.append(above)
            if symbol >= n_nonterminals:
                labels.append(-1)
                words.append(symbol - n_nonterminals)
                continue
            labels.append(symbol)
            side = draw_side(symbol)
            if len(side) == 1 and side[0] >= n_nonterminals:
                # A pre-terminal and its word are one node.
                words.append(side[0] - n_nonterminals)
                continue
            words.append(-1)
            agenda += [(child, len(labels) - 1) for child in reversed(side)]
            if len(labels) + len(agenda) > max_nodes:
                raise ValueError(
                    f"a tree grew beyond max_nodes={max_nodes} nodes; the trees of "
                    "this grammar may be infinitely large. Sample with a larger "
                    "max_nodes if they are not"
                )
        sizes = [1] * len(labels)
        for node in range(len(labels) - 1, 0, -1):
            sizes[parents[node]] += sizes[node]
        yield labels, sizes, parents, words
