"""Values and posteriors of given trees under a grammar."""

import numpy as np

from lpcfg_sk._kernels._lpcfg_trees import (
    ParsedTrees,
    TreeModel,
    tree_posteriors,
)
from lpcfg_sk._parallel import cut_by_work, map_chunks
from lpcfg_sk._ragged import read_only
from lpcfg_sk.treebank import check_treebank

__all__ = ["over_trees", "posterior_vectors"]


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
    # Arrays of one kind keep the kernel from being compiled again.
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
    to one but are no probabilities.
    """
    X = check_treebank(X, estimator="LPCFG", parsed=True, binary=True, allow_empty=True)
    width = int(grammar.arrays.n_states.max(initial=1))
    if len(X) == 0:
        return np.zeros((0, width))
    return np.concatenate(over_trees(tree_posteriors, grammar, X, n_jobs=n_jobs))
