"""Chains of unary rules above the best derivations of one span."""

from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg_sk._kernels._shared import HELPER


class UnaryChains(NamedTuple):
    """The chains of unary rules of a grammar.

    Nonterminals that reach each other by unary rules are one component; without cycles
    of unary rules each nonterminal is a component of its own.

    Attributes
    ----------
    next_hop : int32 array of shape (N, N)
        ``next_hop[A, B]`` is the symbol below A on the most probable chain from A to
        B, -1 where there is none or A is B.
    order : int32 array of shape (N,) or (0,)
        Nonterminals by component, lower components first. Empty where chains are those
        of `next_hop` throughout.
    component : int64 array of shape (n_components + 1,)
        Component c is ``order[component[c]:component[c + 1]]``.
    exit_offset : int64 array of shape (N + 1,)
        Unary rules from A to other components are ``exit_offset[A]:exit_offset[A+1]``.
    exit_child : int32 array
        Their right-hand sides.
    """

    next_hop: np.ndarray
    order: np.ndarray
    component: np.ndarray
    exit_offset: np.ndarray
    exit_child: np.ndarray


@njit(**HELPER)
def add_probable_chains(base, weights, score, bottom):
    """Best derivations over a span, with the best chains of unary rules at their top.

    Parameters
    ----------
    base : float64 array of shape (N,)
        Scores without a unary rule at the top.
    weights : RuleWeights
        Scores of the best chains.
    score : float64 array of shape (N,)
        Output: scores of the span, -inf before.
    bottom : int32 array of shape (N,)
        Output: lower ends of the chains.
    """
    chain_offset, chain_top = weights.chain_offset, weights.chain_top
    chain_score = weights.chain
    for b in range(len(base)):
        if base[b] == -np.inf:
            continue
        for c in range(chain_offset[b], chain_offset[b + 1]):
            a = chain_top[c]
            v = base[b] + chain_score[c]
            if v > score[a]:
                score[a] = v
                bottom[a] = b


@njit(**HELPER)
def add_rewarded_chains(base, weights, chains, bonus, score, bottom, leave):
    """Best derivations over a span where each constituent of a chain has a reward.

    From the lowest component up, a derivation of B either has no unary rule at its top
    or leaves the component by one of its rules; a derivation of A is the chain of the
    most probable rules from A to some B of its component, and B's derivation. So all
    chains are compared where unary rules have no cycle; within a cycle, where longest
    paths are hard to find, the most probable path between each two symbols.

    Parameters
    ----------
    base : float64 array of shape (N,)
        Scores without a unary rule at the top and without the top's reward.
    weights : RuleWeights
        ``chain_top`` lists the chains within components.
    chains : UnaryChains
        Components, and the rules between them.
    bonus : float64 array of shape (N,)
        Rewards of the nonterminals over the span.
    score : float64 array of shape (N,)
        Output: scores of the span, -inf before.
    bottom : int32 array of shape (N,)
        Output: the symbol B of each A.
    leave : int32 array of shape (N,)
        Output: the symbol below B in another component, -1 for none.
    """
    order, component, next_hop = chains.order, chains.component, chains.next_hop
    chain_offset, chain_top = weights.chain_offset, weights.chain_top
    for k in range(len(component) - 1):
        for p in range(component[k], component[k + 1]):
            b = order[p]
            best = base[b]
            for e in range(chains.exit_offset[b], chains.exit_offset[b + 1]):
                child = chains.exit_child[e]
                if score[child] > best:
                    best = score[child]
                    leave[b] = child
            if best == -np.inf:
                continue
            best += bonus[b]
            for c in range(chain_offset[b], chain_offset[b + 1]):
                a = chain_top[c]
                v = best
                x = a
                # No chain is longer, unless scores are not logarithms of probabilities.
                for _ in range(len(base)):
                    if x == b or x < 0:
                        break
                    v += bonus[x]
                    x = next_hop[x, b]
                if x == b and v > score[a]:
                    score[a] = v
                    bottom[a] = b
