"""L-PCFGs whose children have independent states."""

import numpy as np


def independent_children(grammar):
    r"""Make the states of two children independent given rule and parent's state.

    Parameters
    ----------
    grammar : LPCFG
        A probabilistic grammar, or expected counts in its place.

    Returns
    -------
    grammar : LPCFG
        Of the model of Cohen et al. (2012), which remark 2 of the 2014 paper sets
        beside its own:

        .. math:: p(a → b\,c | h_1, a) \; p(h_2 | h_1, a → b\,c) \;
            p(h_3 | h_1, a → b\,c)

        with the three factors that the given grammar has. Among the grammars of this
        form it is the closest in Kullback-Leibler divergence for each rule and state.

    Examples
    --------
    >>> from lpcfg_sk.datasets import make_lpcfg
    >>> from lpcfg_sk.lpcfg import independent_children
    >>> grammar = independent_children(make_lpcfg(m=3, random_state=0))
    >>> grammar.is_probabilistic
    True
    """
    binary = {}
    for rule, tensor in grammar.binary.items():
        left, right = tensor.sum(axis=2), tensor.sum(axis=1)
        total = left.sum(axis=1)[:, None, None]
        products = left[:, :, None] * right[:, None, :]
        binary[rule] = np.divide(
            products, total, out=np.zeros_like(products), where=total != 0
        )
    return type(grammar).from_parameters(
        binary=binary,
        lexical=grammar.lexical,
        root=grammar.root,
        unknown_word=grammar.unknown_word,
    )
