"""Kernels of a grammar, run over the trees of a treebank."""

import numpy as np

from lpcfg_sk._parallel import cut_by_work, map_chunks

__all__ = ["over_trees"]


def over_trees(kernel, grammar, X, *, n_jobs=None):
    """Run a kernel over chunks of trees.

    Parameters
    ----------
    kernel : callable
        One of ``lpcfg_sk._kernels._tree_inside_outside``, which takes the first and
        the last tree, the trees with their rules, and the parameters.
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
    rule, top = grammar.find_rules(X)
    a = grammar.arrays
    trees = (X.node_offsets, X.size, label, rule, top)
    lexicon = (a.lex_offset, a.lexical)
    model = (a.n_states, a.rule_offset, a.binary, *lexicon, a.root_offset, a.root)

    def run(begin, end):
        return kernel(begin, end, *trees, *model)

    chunks = cut_by_work(np.diff(X.node_offsets))
    return list(map_chunks(run, chunks, n_jobs=n_jobs))
