import numpy as np
import pandas as pd

__all__ = ["describe_state", "state_table"]


def describe_state(grammar, nonterminal, state, *, top=10):
    """What a latent state of a nonterminal does most.

    Parameters
    ----------
    grammar : LPCFG
        A grammar with non-negative parameters (EM, pivot, plain PCFG).
    nonterminal : str
        The nonterminal a.
    state : int
        The state h, from 0.
    top : int, default=10
        Number of words or rules.

    Returns
    -------
    table : DataFrame
        What state h rewrites to, the most probable first: ``kind`` ("word" or
        "rule"), ``expansion``, its ``probability`` given (a, h), and its ``lift``: that
        probability over the mean of the states of a.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> from lpcfg_sk.inspection import describe_state
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[0.25, 0.25], [0.25, 0.25]]]},
    ...     lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> describe_state(grammar, "A", 1)
       kind expansion  probability  lift
    0  word         y         0.75   2.0
    1  word         x         0.25   0.4
    """
    _check(grammar)
    if nonterminal not in grammar.m:
        raise ValueError(
            f"the grammar has no nonterminal {nonterminal!r}; it has "
            f"{', '.join(grammar.nonterminals[:8])}, ..."
        )
    m = grammar.m[nonterminal]
    if not 0 <= state < m:
        raise ValueError(f"{nonterminal!r} has the states 0 to {m - 1}, got {state}")
    kinds, names, weights = _expansions(grammar)[nonterminal]
    table = pd.DataFrame(
        {
            "kind": kinds,
            "expansion": names,
            "probability": weights[:, state],
            "lift": weights[:, state] / weights.mean(axis=1),
        }
    )
    table = table[table["probability"] > 0]
    return table.sort_values(
        "probability", ascending=False, kind="stable", ignore_index=True
    ).head(top)


def state_table(grammar, *, top=5):
    """All latent states of a grammar, one row each.

    Parameters
    ----------
    grammar : LPCFG
        A grammar with non-negative parameters.
    top : int, default=5
        Number of expansions to show.

    Returns
    -------
    table : DataFrame
        Columns ``nonterminal``, ``state``, ``entropy`` (in bits, of what the state
        rewrites to), and ``expansions``: the most probable ones.

    Examples
    --------
    >>> from lpcfg_sk import LPCFG
    >>> from lpcfg_sk.inspection import state_table
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): [[[0.25, 0.25], [0.25, 0.25]]]},
    ...     lexical={("A", "x"): [1.0, 0.25], ("A", "y"): [0.0, 0.75]},
    ...     root={"S": [1.0]},
    ... )
    >>> state_table(grammar).round(2)
      nonterminal  state  entropy expansions
    0           A      0     0.00          x
    1           A      1     0.81       y, x
    2           S      0     0.00        A A
    """
    _check(grammar)
    rows = []
    for label, (_, names, weights) in sorted(_expansions(grammar).items()):
        total = weights.sum(axis=0)
        share = weights / np.where(total > 0, total, 1.0)
        logs = np.log2(np.where(share > 0, share, 1.0))
        entropy = np.maximum(-(share * logs).sum(axis=0), 0.0)
        for state in range(weights.shape[1]):
            best = np.argsort(-share[:, state], kind="stable")[:top]
            shown = [names[i] for i in best if share[i, state] > 0]
            rows.append((label, state, entropy[state], ", ".join(shown)))
    return pd.DataFrame(rows, columns=["nonterminal", "state", "entropy", "expansions"])


def _check(grammar):
    arrays = grammar.arrays
    if any((v < 0).any() for v in (arrays.binary, arrays.lexical, arrays.root)):
        raise ValueError(
            "the states of a grammar with negative parameters have no meaning one by "
            "one: a spectral grammar is known up to an invertible transform only; use "
            "PivotLPCFG or EMLPCFG to read states"
        )


def _expansions(grammar):
    """For each nonterminal its expansions and P(expansion | a, h)."""
    found = {}
    for (a, b, c), tensor in grammar.binary.items():
        found.setdefault(a, []).append(("rule", f"{b} {c}", tensor.sum(axis=(1, 2))))
    for (a, x), vector in grammar.lexical.items():
        found.setdefault(a, []).append(("word", x, np.asarray(vector)))
    return {
        a: ([k for k, _, _ in e], [n for _, n, _ in e], np.array([v for *_, v in e]))
        for a, e in found.items()
    }
