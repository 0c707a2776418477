"""Blocks of the Hankel matrix of a function of trees, and automata from them."""

import re

import numpy as np

from lpcfg_sk.automata._wta import WTA

# Label of new nodes, which automata with one tensor ignore.
_NODE_LABEL = "X"


def insert_tree(context, tree, *, hole="*"):
    """Put a tree into the hole of a context, c[t] (section 2, figure 1).

    Parameters
    ----------
    context : str or Tree
        A binary tree with one leaf over the word `hole`, such as ``"(X (P a) (P *))"``.
    tree : str or Tree
        A tree, or another context.
    hole : str, default="*"
        The word that marks the hole.

    Returns
    -------
    tree : str
        As one line of brackets.

    Examples
    --------
    >>> from lpcfg_sk.automata import insert_tree
    >>> insert_tree("(X (P a) (P *))", "(X (P b) (P c))")
    '(X (P a) (X (P b) (P c)))'
    """
    before, after = _around_hole(str(context), hole)
    return f"{before}{tree}{after}"


def hankel_matrix(f, contexts, trees, *, hole="*"):
    r"""Compute a block of the Hankel matrix of a function of trees (section 2.1).

    Parameters
    ----------
    f : callable
        Takes a list of trees as bracketed strings and returns their values, such as
        ``WTA.value``.
    contexts : sequence of str or Tree
        Binary trees with one leaf over the word `hole`: the rows.
    trees : sequence of str or Tree
        Binary trees: the columns.
    hole : str, default="*"
        The word that marks the hole.

    Returns
    -------
    H : ndarray of float64, shape (n_contexts, n_trees)
        :math:`H(c, t) = f(c[t])`. For an automaton it is the product of
        :meth:`WTA.context_vectors` and :meth:`WTA.tree_vectors` (equation 1).

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk import WTA
    >>> from lpcfg_sk.automata import hankel_matrix
    >>> wta = WTA([1.0], np.full((1, 1, 1), 0.5), {"a": [1.0]})
    >>> contexts, trees = ["(P *)", "(X (P a) (P *))"], ["(P a)", "(X (P a) (P a))"]
    >>> hankel_matrix(wta.value, contexts, trees)
    array([[1.  , 0.5 ],
           [0.5 , 0.25]])
    """
    around = [_around_hole(str(context), hole) for context in contexts]
    trees = [str(tree) for tree in trees]
    values = f([f"{before}{t}{after}" for before, after in around for t in trees])
    return np.asarray(values, dtype=np.float64).reshape(len(around), len(trees))


def wta_from_hankel(f, words, contexts, trees, *, rank=None, rank_tol=1e-10, hole="*"):
    r"""Recover a minimal automaton from values of its function (theorem 2).

    Parameters
    ----------
    f : callable
        Takes a list of trees as bracketed strings and returns their values. Node
        labels of new nodes are ``"X"``, so f should not depend on labels.
    words : sequence of str
        The alphabet.
    contexts, trees : sequence of str or Tree
        A basis: their block of the Hankel matrix has the rank of f. Rows of
        contexts and columns of trees need not be independent.
    rank : int, default=None
        Number of states; that of the block where None.
    rank_tol : float, default=1e-10
        Singular values below this share of the largest count as zero.
    hole : str, default="*"
        The word that marks the hole of a context.

    Returns
    -------
    wta : WTA
        It computes f where f is rational and the basis is complete.

    Notes
    -----
    With a rank factorisation :math:`H = PS` of the block, here from its singular value
    decomposition, the automaton with :math:`P_A = P` and :math:`S_A = S` is

    .. math::
        α^⊤ = f(\cdot)^⊤ S^+, \quad ω_σ = P^+ H(\cdot, σ), \quad
        T(I, S, S) = P^+ H(\cdot, (t_1, t_2))

    from the values of the trees, of words in contexts, and of all pairs of trees in
    contexts.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk import WTA
    >>> from lpcfg_sk.automata import wta_from_hankel
    >>> wta = WTA([1.0], np.full((1, 1, 1), 0.5), {"a": [1.0]})
    >>> found = wta_from_hankel(wta.value, ["a"], ["(P *)"], ["(P a)"])
    >>> found.value(["(X (P a) (X (P a) (P a)))"])
    array([0.25])
    """
    words, trees = list(words), [str(tree) for tree in trees]
    block = hankel_matrix(f, contexts, trees, hole=hole)
    left, singular, right = np.linalg.svd(block, full_matrices=False)
    # A block of zeros has no singular value above zero.
    block_rank = int((singular > rank_tol * singular[0]).sum())
    rank = block_rank if rank is None else rank
    if not 1 <= rank <= block_rank:
        raise ValueError(
            f"the block of {block.shape[0]} contexts and {block.shape[1]} trees has "
            f"rank {block_rank}, which gives an automaton of 1 to {block_rank} states; "
            + (f"got rank={rank}" if block_rank else "f is zero on it")
        )
    root = np.sqrt(singular[:rank])
    from_contexts = (left[:, :rank] / root).T
    from_trees = right[:rank].T / root
    leaves = [f"({_NODE_LABEL} {word})" for word in words]
    omega = from_contexts @ hankel_matrix(f, contexts, leaves, hole=hole)
    pairs = [f"({_NODE_LABEL} {t1} {t2})" for t1 in trees for t2 in trees]
    values = from_contexts @ hankel_matrix(f, contexts, pairs, hole=hole)
    values = values.reshape(rank, len(trees), len(trees))
    T = np.einsum("ist,sj,tk->ijk", values, from_trees, from_trees, optimize=True)
    alpha = np.asarray(f(trees), dtype=np.float64) @ from_trees
    return WTA(alpha, T, dict(zip(words, omega.T, strict=True)))


def _around_hole(context, hole):
    """Text of a context before and after its hole."""
    parts = re.split(rf"\([^\s()]+ {re.escape(hole)}\)", context)
    if len(parts) != 2:
        raise ValueError(
            f"a context has one leaf over the word {hole!r}, such as '(P {hole})'; "
            f"got {len(parts) - 1} in {context}"
        )
    return parts
