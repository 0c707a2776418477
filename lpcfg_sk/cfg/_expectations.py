"""Exact expectations under a context-free grammar with rule probabilities."""

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from lpcfg_sk.cfg._binomials import BinomialChains
from lpcfg_sk.cfg._empirical_risk import normalised
from lpcfg_sk.cfg._rules import rules_by_lhs, useful_nonterminals

# Newton's method doubles the digits; at a double root it only halves the error.
_MOST_STEPS = 200


def rule_expectations(grammar, theta):
    r"""Expected number of uses of each rule in a derivation, E[ψ] (equation 11).

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : array-like of float, shape (n_rules,)
        Their probabilities, in the order of ``grammar.rules``.

    Returns
    -------
    counts : Series of float
        E[ψ] by rule. Their sum is the expected length of a derivation.

    Raises
    ------
    ValueError
        If derivations are infinitely long in expectation.

    Notes
    -----
    With :math:`M_{AB} = \sum_{A → β} θ_{A → β} |β|_B`, the expected number of children
    B of a node A, the expected number of nodes A is entry (S, A) of
    :math:`I + M + M^2 + … = (I - M)^{-1}`, and

    .. math:: E[ψ_{A → β}] = θ_{A → β} \, \bigl((I - M)^{-1}\bigr)_{SA}

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import rule_expectations
    >>> grammar = CFG.from_string("S -> S S | a")
    >>> rule_expectations(grammar, [0.25, 0.75])
    S -> S S    0.5
    S -> 'a'    1.5
    Name: expectation, dtype: float64
    """
    theta = _probabilities(grammar, theta)
    return _series(grammar, _rule_uses(grammar, theta)[0], "expectation")


def rule_second_moments(grammar, theta):
    r"""Expected products of the uses of two rules, E[ψψᵀ] (section 7.1).

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : array-like of float, shape (n_rules,)
        Their probabilities, in the order of ``grammar.rules``.

    Returns
    -------
    moments : DataFrame of shape (n_rules, n_rules)
        E[ψψᵀ].

    Notes
    -----
    Let :math:`v_A` be the expected counts below a node A, and :math:`s_r` the sum of
    :math:`v_B` over the right-hand side of rule r. The counts below the children of a
    node are independent, so with :math:`n_r = E[ψ_r]`

    .. math::
        E[ψψ^⊤] = \sum_r n_r \Bigl((e_r + s_r)(e_r + s_r)^⊤
        - \sum_{B ∈ r} v_B v_B^⊤\Bigr)

    since the second moments below a child are counted at the rule of that child.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import rule_second_moments
    >>> grammar = CFG.from_string("S -> a S | b")
    >>> rule_second_moments(grammar, [0.5, 0.5])
              S -> 'a' S  S -> 'b'
    S -> 'a' S         3.0       1.0
    S -> 'b'           1.0       1.0
    """
    theta = _probabilities(grammar, theta)
    counts, below, children = _rule_uses(grammar, theta)
    uses = np.eye(len(theta)) + children @ below
    n_nodes = children.T @ counts
    moments = (uses.T * counts) @ uses - (below.T * n_nodes) @ below
    names = [str(rule) for rule in grammar.rules]
    return pd.DataFrame(moments, index=names, columns=names)


def entropy(grammar, theta):
    r"""Exact entropy H_d of the derivations of a grammar, in nats (section 3.1).

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : array-like of float, shape (n_rules,)
        Their probabilities, in the order of ``grammar.rules``.

    Returns
    -------
    entropy : float
        :math:`H_d = -\sum_r E[ψ_r] \log θ_r`.

    See Also
    --------
    lpcfg_sk.bounds.entropy_bound : A bound from the constants of the distribution.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import entropy
    >>> grammar = CFG.from_string("S -> a S | b")
    >>> round(entropy(grammar, [0.5, 0.5]), 4)  # 2 log 2
    1.3863
    """
    theta = _probabilities(grammar, theta)
    return _log_loss(grammar, theta, theta)


def kl_divergence(grammar, p, q):
    r"""Exact Kullback-Leibler divergence of derivations, in nats (section 2).

    Parameters
    ----------
    grammar : CFG
        The rules.
    p, q : array-like of float, shape (n_rules,)
        Two sets of probabilities, in the order of ``grammar.rules``.

    Returns
    -------
    divergence : float
        :math:`D(p \| q) = \sum_r E_p[ψ_r] \log(p_r / q_r)`; infinite where q forbids a
        rule that p uses.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import kl_divergence
    >>> grammar = CFG.from_string("S -> a S | b")
    >>> kl_divergence(grammar, [0.5, 0.5], [0.5, 0.5])
    0.0
    >>> round(kl_divergence(grammar, [0.5, 0.5], [0.25, 0.75]), 4)  # log(4/3)
    0.2877
    """
    p, q = _probabilities(grammar, p), _probabilities(grammar, q)
    counts, *_ = _rule_uses(grammar, p)
    used = counts > 0
    with np.errstate(divide="ignore"):
        return float(counts[used] @ (np.log(p[used]) - np.log(q[used])))


def excess_risk(grammar, p, q, *, gamma=0.0):
    r"""Excess risk of rule probabilities over the best ones with a margin (equation 4).

    Parameters
    ----------
    grammar : CFG
        The rules.
    p : array-like of float, shape (n_rules,)
        Probabilities of the rules in the distribution that the data comes from.
    q : array-like of float, shape (n_rules,)
        The probabilities to judge, such as ``MarginEMPCFG.theta_``.
    gamma : float, default=0.0
        Margin of the class Θ(γ), in the order of ``grammar.rules``. With 0 it has all
        probabilities, and the excess risk is the Kullback-Leibler divergence.

    Returns
    -------
    risk : float
        :math:`E_p[-\log q] - \min_{q' ∈ Θ(γ)} E_p[-\log q']`. The minimum is equation
        22 at the expected counts. Negative where q is better than the class.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import excess_risk
    >>> grammar = CFG.from_string("S -> a S | b")
    >>> round(excess_risk(grammar, [0.5, 0.5], [0.25, 0.75]), 4)
    0.2877
    >>> excess_risk(grammar, [0.1, 0.9], [0.25, 0.75], gamma=0.25)
    0.0
    """
    if not 0 <= gamma <= 0.5:
        raise ValueError(f"gamma must lie between 0 and 1/2, got {gamma}")
    p, q = _probabilities(grammar, p), _probabilities(grammar, q)
    if gamma == 0:
        return kl_divergence(grammar, p, q)
    groups = list(rules_by_lhs(grammar.rules).values())
    chains = BinomialChains(groups, len(p), gamma)
    counts, *_ = _rule_uses(grammar, p)
    best = chains.join(*chains.estimate(counts, chains.split(p)))
    return _log_loss(grammar, p, q) - _log_loss(grammar, p, best)


def partition_function(grammar, weights):
    r"""Total weight of the derivations from each nonterminal (for theorem 1).

    Parameters
    ----------
    grammar : CFG
        The rules.
    weights : array-like of float, shape (n_rules,)
        Their weights, not negative, in the order of ``grammar.rules``. They need not
        sum to one.

    Returns
    -------
    Z : Series of float
        By nonterminal; 0 for those that no derivation of a sentence contains.

    Raises
    ------
    ValueError
        If the sum diverges, or has no terms.

    Notes
    -----
    The least solution of :math:`Z_A = \sum_{A → β} w_{A → β} \prod_{B ∈ β} Z_B`, by
    Newton's method from below (Etessami and Yannakakis, 2009).

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import partition_function
    >>> grammar = CFG.from_string("S -> S S | a")
    >>> partition_function(grammar, [0.75, 0.25]).round(6).to_dict()
    {'S': 0.333333}
    """
    weights = _weights(grammar, weights)
    tables = grammar.tables()
    useful = useful_nonterminals(tables, weights)
    if not useful[tables.start]:
        raise ValueError(
            f"no derivation from the start symbol {grammar.start!r} has a positive "
            "weight; there is nothing to sum"
        )
    children = _children(grammar)
    # Rules of derivations of sentences, over the nonterminals of such derivations.
    used = (weights > 0) & useful[tables.rule_lhs] & (children @ ~useful == 0)
    children, weights = children[used][:, useful], weights[used]
    new_id = np.cumsum(useful) - 1
    total = _least_solution(new_id[tables.rule_lhs[used]], children, weights)
    values = np.zeros(len(useful))
    values[useful] = total
    return pd.Series(values, index=grammar.nonterminals, name="Z")


def renormalize(grammar, weights):
    r"""Probabilities of rules with the distribution of weighted rules (Chi, 1999).

    Parameters
    ----------
    grammar : CFG
        The rules.
    weights : array-like of float, shape (n_rules,)
        Their weights, not negative, in the order of ``grammar.rules``.

    Returns
    -------
    theta : Series of float
        Probabilities by rule. A derivation has probability w(z)/Z, its weight over
        that of all derivations.

    Raises
    ------
    ValueError
        If the weight of all derivations is infinite or zero.

    Notes
    -----
    With Z of :func:`partition_function`,

    .. math:: θ_{A → β} = \frac{w_{A → β}}{Z_A} \prod_{B ∈ β} Z_B

    The proof of theorem 1 of Cohen and Smith (2012) uses it for the binary normal
    form. It also repairs probabilities that sum to one but lose mass to infinite
    derivations. Nonterminals that no derivation contains get equal probabilities.

    Examples
    --------
    >>> from lpcfg_sk import CFG
    >>> from lpcfg_sk.cfg import renormalize
    >>> renormalize(CFG.from_string("S -> S S | a"), [0.75, 0.25]).round(6)
    S -> S S    0.25
    S -> 'a'    0.75
    Name: theta, dtype: float64
    """
    weights = _weights(grammar, weights)
    Z = partition_function(grammar, weights).to_numpy()
    children = _children(grammar)
    joint = weights * np.exp(children @ np.log(np.where(Z > 0, Z, 1.0)))
    joint[children @ (Z == 0) > 0] = 0.0
    unused = (Z == 0)[grammar.tables().rule_lhs]
    theta = normalised(grammar, np.where(unused, 1.0, joint))
    return _series(grammar, theta, "theta")


def _log_loss(grammar, p, q):
    """Expected log-loss E_p[-log q] of derivations, p and q as arrays."""
    counts, *_ = _rule_uses(grammar, p)
    used = counts > 0
    with np.errstate(divide="ignore"):
        return -float(counts[used] @ np.log(q[used]))


def _rule_uses(grammar, theta):
    """Expected uses of rules in a derivation and below each nonterminal.

    Parameters
    ----------
    grammar : CFG
        The rules.
    theta : ndarray of float64, shape (n_rules,)
        Their probabilities.

    Returns
    -------
    counts : ndarray of float64, shape (n_rules,)
        E[ψ].
    below : ndarray of float64, shape (n_nonterminals, n_rules)
        The same for derivations from each nonterminal; 0 where the start symbol does
        not reach it.
    children : csr_array of shape (n_rules, n_nonterminals)
        Nonterminals of right-hand sides.
    """
    tables, n = grammar.tables(), len(grammar.nonterminals)
    children = _children(grammar)
    rules = np.arange(len(theta))
    heads = scipy.sparse.csr_array((theta, (tables.rule_lhs, rules)), (n, len(theta)))
    step = heads @ children
    reached = np.zeros(n, dtype=bool)
    reached[breadth_first_order(step > 0, tables.start)[0]] = True
    step = np.where(reached[:, None], step.toarray(), 0.0)
    radius = np.abs(np.linalg.eigvals(step)).max()
    if radius >= 1 - 1e-12:
        raise ValueError(
            f"derivations from {grammar.start!r} are infinitely long in expectation "
            f"(spectral radius {radius:.6g} of the expected numbers of children); "
            "renormalize() gives probabilities of the finite derivations"
        )
    below = np.linalg.solve(np.eye(n) - step, heads.toarray() * reached[:, None])
    return below[tables.start], below, children


def _children(grammar):
    """Number of times that each nonterminal is on the right-hand side of each rule."""
    ids = {name: i for i, name in enumerate(grammar.nonterminals)}
    places = [
        (r, ids[s])
        for r, rule in enumerate(grammar.rules)
        for s in rule._nonterminals()
    ]
    row, column = np.array(places, dtype=np.int64).reshape(-1, 2).T
    shape = (len(grammar.rules), len(ids))
    return scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape)


def _least_solution(lhs, children, weights):
    """Solve Z = F(Z) from below, where all nonterminals have derivations."""
    n = children.shape[1]
    heads = scipy.sparse.csr_array(
        (np.ones(len(lhs)), (lhs, np.arange(len(lhs)))), (n, len(lhs))
    )

    def below_rules(Z):
        with np.errstate(divide="ignore"):
            return weights * np.exp(children @ np.log(Z))

    Z = np.zeros(n)
    while not Z.all():
        Z = heads @ below_rules(Z)
    for _ in range(_MOST_STEPS):
        by_rule = below_rules(Z)
        jacobian = ((heads * by_rule) @ children).toarray() / Z
        # Below the least solution the radius is less than 1.
        if np.abs(np.linalg.eigvals(jacobian)).max() > 1 + 1e-6:
            break
        step = np.linalg.solve(np.eye(n) - jacobian, heads @ by_rule - Z)
        if (step <= 1e-15 * Z).all():
            return Z
        Z = Z + np.maximum(step, 0.0)
    else:
        if np.allclose(heads @ below_rules(Z), Z, rtol=1e-9, atol=0):
            return Z
    raise ValueError(
        "the weight of all derivations is infinite; make the weights of recursive "
        "rules smaller"
    )


def _weights(grammar, weights):
    """Check weights of rules."""
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (len(grammar.rules),):
        raise ValueError(
            f"expected one number per rule, {len(grammar.rules)} in the order of "
            f"grammar.rules, got an array of shape {weights.shape}"
        )
    if not ((weights >= 0) & np.isfinite(weights)).all():
        raise ValueError("weights of rules must be finite and not negative")
    return weights


def _probabilities(grammar, theta):
    """Check probabilities of rules."""
    theta = _weights(grammar, theta)
    for lhs, group in rules_by_lhs(grammar.rules).items():
        total = theta[group].sum()
        if abs(total - 1) > 1e-8:
            raise ValueError(
                f"the probabilities of the rules of {lhs!r} sum to {total:.8g}, not 1; "
                "renormalize() makes probabilities of weights"
            )
    return theta


def _series(grammar, values, name):
    return pd.Series(values, index=[str(rule) for rule in grammar.rules], name=name)
