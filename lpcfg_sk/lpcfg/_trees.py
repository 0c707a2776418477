"""Trees under a grammar: values, posteriors and samples."""

import numpy as np
from sklearn.utils import check_random_state

from lpcfg_sk._kernels._lpcfg_trees import (
    ParsedTrees,
    SamplingTables,
    TreeModel,
    draw_trees,
    tree_posteriors,
    tree_values,
)
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import find_keys, offsets, read_only
from lpcfg_sk._validation import check_count
from lpcfg_sk.treebank import (
    SymbolTable,
    Treebank,
    check_treebank,
    leaf_tokens,
    lexical_keys,
    rule_keys,
)

#: How far sums of probabilities may be from one.
_TOLERANCE = 1e-6


def over_trees(kernel, grammar, X, *, n_jobs=None):
    """Run a kernel over chunks of trees.

    Parameters
    ----------
    kernel : callable
        One of ``lpcfg_sk._kernels._lpcfg_trees``.
    grammar : LPCFG
        The model.
    X : Treebank
        Binary trees over pre-terminals.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    list
        What the kernel returns, chunk by chunk.
    """
    label, _ = grammar.encode(X)
    columns = (X.node_offsets, X.size, label, *grammar.find_rules(X))
    # Numba compiles a kernel again for writeable arrays.
    trees = ParsedTrees(*map(read_only, columns))
    model = TreeModel(*(getattr(grammar.arrays, name) for name in TreeModel._fields))

    def run(begin, end):
        return kernel(begin, end, trees, model)

    chunks = cut_by_work(np.diff(X.node_offsets))
    return list(map_chunks(run, chunks, n_jobs=n_jobs))


def posterior_vectors(grammar, X, *, n_jobs=None):
    """Posterior probability of each latent state at each node.

    Parameters
    ----------
    grammar : LPCFG
        The model.
    X : Treebank or iterable of trees
        Binary trees over pre-terminals.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (n_nodes, max m)
        P(h | tree) for each node, zero beyond the states of its nonterminal, and
        in trees that the grammar does not generate.

    Notes
    -----
    Row i is :math:`b^i ∘ β^i / Σ_h b^i_h β^i_h` with the inside and outside
    vectors of figure 2. For a grammar in another basis (theorem 3) rows still sum
    to one but are not probabilities.
    """
    X = check_treebank(X, estimator="LPCFG", parsed=True, binary=True, allow_empty=True)
    width = int(grammar.arrays.n_states.max(initial=1))
    if len(X) == 0:
        return np.zeros((0, width))
    return np.concatenate(over_trees(tree_posteriors, grammar, X, n_jobs=n_jobs))


def why_not_probabilistic(grammar):
    """Say why the parameters of a grammar are not probabilities.

    Parameters
    ----------
    grammar : LPCFG
        The grammar.

    Returns
    -------
    str or None
        What is wrong, None if nothing is.
    """
    a = grammar.arrays
    for name in ("binary", "lexical", "root"):
        values = getattr(a, name)
        if values.min(initial=0.0) < 0:
            return f"a parameter of {name} is negative ({values.min():.3g})"
    if abs(a.root.sum() - 1) > _TOLERANCE:
        return f"the root probabilities sum to {a.root.sum():.6g} instead of 1"
    totals = _rule_totals(a)
    wrong = np.flatnonzero((np.abs(totals - 1) > _TOLERANCE) & _reached(a))
    if len(wrong):
        first = offsets(a.n_states)
        label = int(np.searchsorted(first, wrong[0], side="right")) - 1
        return (
            f"the rules of state {wrong[0] - first[label]} of "
            f"{grammar.nonterminals[label]!r} sum to {totals[wrong[0]]:.6g} instead "
            "of 1"
        )
    return None


def normalize(grammar):
    """See :meth:`LPCFG.normalized`."""
    a = grammar.arrays
    for name in ("binary", "lexical", "root"):
        if getattr(a, name).min(initial=0.0) < 0:
            raise ValueError(
                f"The grammar has negative parameters in {name} and cannot be "
                "normalised."
            )
    totals = _rule_totals(a)
    totals[totals == 0] = 1.0
    rows, cells, _ = _binary_rows(a)
    whole = a.root.sum()
    return grammar._replace(
        binary=a.binary / np.repeat(totals[rows], cells),
        lexical=a.lexical / totals[a.states(a.lex_label)],
        root=a.root / whole if whole > 0 else a.root,
    )


def sample_trees(grammar, n, random_state, max_nodes):
    """See :meth:`LPCFG.sample`.

    Returns
    -------
    treebank : Treebank
    states : ndarray of int32
    """
    n = check_count("n", n, 0)
    problem = why_not_probabilistic(grammar)
    if problem is not None:
        raise ValueError(
            f"Only a probabilistic grammar can be sampled, but {problem}; see "
            "LPCFG.normalized for grammars without negative parameters."
        )
    a = grammar.arrays
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    choice_offset, choice_total, choice = _choices(a)
    tables = SamplingTables(
        n_states=a.n_states,
        state_offset=offsets(a.n_states),
        choice_offset=choice_offset,
        choice_total=choice_total,
        choice=choice,
        rule_left=a.rule_left,
        rule_right=a.rule_right,
        rule_offset=a.rule_offset,
        binary=a.binary,
        root_label=a.root_label,
        root_cumulative=np.cumsum(a.root),
    )
    nodes, bounds = draw_trees(
        int(n), np.random.Generator(np.random.PCG64(seed)), int(max_nodes), tables
    )
    if bounds[-1] < 0:
        raise ValueError(
            f"A tree grew beyond max_nodes={max_nodes} nodes; the trees of this "
            "grammar may be infinitely large. Sample with a larger max_nodes if they "
            "are not."
        )
    label, state, size, parent, word = np.ascontiguousarray(nodes.T)
    treebank = Treebank.from_columns(
        label=label,
        size=size,
        parent=parent,
        node_offsets=bounds,
        token=word[word >= 0],
        token_offsets=offsets(word >= 0)[bounds],
        labels=SymbolTable(grammar.nonterminals),
        tokens=SymbolTable(grammar.words),
    )
    return treebank, state


def _binary_rows(arrays):
    """Return the parent's state of each row of the tensors, its length and its sum."""
    m = arrays.n_states.astype(np.int64)
    cells = m[arrays.rule_left] * m[arrays.rule_right]
    rows = arrays.states(arrays.rule_parent)
    cells = np.repeat(cells, m[arrays.rule_parent])
    begins = offsets(cells)[:-1]
    sums = np.add.reduceat(arrays.binary, begins) if len(rows) else np.zeros(0)
    return rows, cells, sums


def _rule_totals(arrays):
    """Return the sum of the parameters of each state's rules."""
    n = int(arrays.n_states.sum())
    rows, _, sums = _binary_rows(arrays)
    return np.bincount(rows, weights=sums, minlength=n) + np.bincount(
        arrays.states(arrays.lex_label), weights=arrays.lexical, minlength=n
    )


def _reached(a):
    """Return which states some rule or root can generate."""
    reached = np.zeros(int(a.n_states.sum()), dtype=bool)
    reached[a.states(a.root_label)[a.root > 0]] = True
    first = offsets(a.n_states)
    rule, _, left, right = a.binary_states()
    used = a.binary > 0
    reached[(first[a.rule_left[rule]] + left)[used]] = True
    reached[(first[a.rule_right[rule]] + right)[used]] = True
    return reached


def _choices(a):
    """List what each state may generate, with cumulative probabilities."""
    rows, _, sums = _binary_rows(a)
    rule = np.repeat(np.arange(len(a.rule_parent)), a.n_states[a.rule_parent])
    state = np.concatenate([rows, a.states(a.lex_label)])
    choice = np.concatenate([rule, -1 - np.repeat(a.lex_word, np.diff(a.lex_offset))])
    order = np.argsort(state, kind="stable")
    probability = np.concatenate([sums, a.lexical])[order]
    bounds = offsets(np.bincount(state, minlength=int(a.n_states.sum())))
    running = np.cumsum(probability)
    before = np.concatenate([[0.0], running])[bounds[:-1]]
    running -= np.repeat(before, np.diff(bounds))
    return bounds, running, choice[order].astype(np.int64)


class TreesOfGrammar:
    """Methods of a grammar for given trees and for samples."""

    def encode(self, treebank):
        """Translate the symbols of a treebank into ids of this grammar.

        Parameters
        ----------
        treebank : Treebank
            Trees or sentences.

        Returns
        -------
        label : ndarray of int32, shape (n_nodes,)
            Nonterminal of each node, -1 for unknown ones.
        word : ndarray of int32, shape (n_tokens,)
            Word of each token; an unknown word becomes its signature class if
            the grammar knows that, else `unknown_word`, else -1.
        """
        label = treebank.labels.translate(treebank.label, self._labels)
        word = treebank.words.translate(treebank.word, self._words)
        if treebank.words.backoff is not None:
            unknown = np.flatnonzero(word < 0)
            backoff, known_as = treebank.words.backoff, treebank.word[unknown]
            while len(unknown):
                coarser = backoff[known_as]
                word[unknown] = treebank.words.translate(coarser, self._words)
                left = (word[unknown] < 0) & (coarser != known_as)
                unknown, known_as = unknown[left], coarser[left]
        if self.unknown_word is not None:
            word[word < 0] = self._words.index(self.unknown_word)
        return label, word

    def log_prob(self, X, *, n_jobs=None):
        """Log probability of each tree.

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees over pre-terminals.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_trees,)
            Natural logarithm; -inf where the value is zero or negative, and for
            trees with a rule that the grammar does not have.
        """
        signs, logs = self.tree_values(X, n_jobs=n_jobs)
        return np.where(signs > 0, logs, -np.inf)

    def tree_values(self, X, *, n_jobs=None):
        """Sign and log absolute value of each tree (figure 4).

        Parameters
        ----------
        X : Treebank or iterable of trees
            Binary trees over pre-terminals.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        signs : ndarray of float64, shape (n_trees,)
            -1, 0 or 1.
        logs : ndarray of float64, shape (n_trees,)
            -inf where the sign is 0.
        """
        X = check_treebank(
            X, estimator="LPCFG", parsed=True, binary=True, allow_empty=True
        )
        if len(X) == 0:
            return np.zeros(0), np.zeros(0)
        parts = over_trees(tree_values, self, X, n_jobs=n_jobs)
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def find_rules(self, treebank):
        """Find the rule of this grammar at each node of binary trees.

        Parameters
        ----------
        treebank : Treebank
            Binary trees over pre-terminals.

        Returns
        -------
        rule : ndarray of int32, shape (n_nodes,)
            Binary rule, at leaves the lexical entry; -1 where the grammar has none.
        top : ndarray of int32, shape (n_trees,)
            Root entry of each tree, -1 where the grammar has none.
        """
        label, word = self.encode(treebank)
        n_labels = len(self.nonterminals)
        rule = np.full(len(label), -1, dtype=np.int32)
        inner = np.flatnonzero(treebank.size > 1)
        left = inner + 1
        right = left + treebank.size[left]
        keys = rule_keys(label[inner], label[left], label[right], n_labels)
        rule[inner] = find_keys(self._rule_keys, keys)
        leaves = np.flatnonzero(treebank.size == 1)
        words = word[leaf_tokens(treebank, leaves)]
        keys = lexical_keys(words, label[leaves], n_labels)
        rule[leaves] = find_keys(self._lexical_keys, keys)
        roots = label[treebank.node_offsets[:-1]]
        return rule, find_keys(self.arrays.root_label, roots).astype(np.int32)

    def sample(
        self, n=1, random_state=None, *, return_states=False, max_nodes=1_000_000
    ):
        """Draw trees from a probabilistic grammar.

        Parameters
        ----------
        n : int, default=1
            Number of trees.
        random_state : int, RandomState instance or None, default=None
            Source of randomness. The first trees of a larger sample are those of
            a smaller one.
        return_states : bool, default=False
            Whether to return the latent states as well.
        max_nodes : int, default=1_000_000
            Limit on the size of one tree; a grammar whose expected tree is
            infinite would not end otherwise.

        Returns
        -------
        trees : Treebank
            Binary trees.
        states : ndarray of int32, shape (n_nodes,)
            Latent state of each node; only with `return_states`.

        Raises
        ------
        ValueError
            If the parameters are not probabilities, or a tree grows beyond
            `max_nodes`.
        """
        trees, states = sample_trees(self, n, random_state, max_nodes)
        return (trees, states) if return_states else trees
