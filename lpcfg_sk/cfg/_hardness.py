"""Why the unsupervised case is hard: formulas as grammars (section 6.2.1)."""

from itertools import product

from lpcfg_sk.cfg._cfg import CFG

__all__ = ["assignment_of_tree", "sat_grammar"]


def sat_grammar(clauses):
    r"""Turn a formula of 3-SAT into a grammar and a string.

    Parameters
    ----------
    clauses : iterable of tuple of three int
        The literals of each clause: r for the variable Y_r, -r for its negation,
        r = 1, 2, ...

    Returns
    -------
    grammar : CFG
        The grammar G_φ, with start symbol ``Sm`` for m clauses.
    sentence : list of str
        The string s_φ = (10)^{3m}.

    See Also
    --------
    assignment_of_tree : Reads an assignment off a parse of the string.

    Notes
    -----
    ``A<j>`` has a rule for each assignment that satisfies clause j, ``U<r>=<y>`` says
    that variable r has the value y, and derives ``10`` by ``V<r>`` and ``V-<r>``,
    which stand for the variable and its negation. (The paper names the start symbol
    S_n where it means S_m.)

    Lemma 5: there are probabilities that give the string probability 1 if and only if
    the formula is satisfiable. More is true: for an unsatisfiable formula no
    probabilities give it more than 1/2. For round the probabilities of ``V<r> -> 1``
    to an assignment. It misses some clause j, so every rule of ``A<j>`` has a ``U``
    that disagrees with it, and that ``U`` derives ``10`` with probability at most 1/2.

    This mends the proof of theorem 4 for a margin γ > 0, which sets α = γ and claims
    that an unsatisfiable formula has probability at most γ: three uses each of
    ``V<r> -> 1`` and ``V<r> -> 0`` at probability 1/2 have much more. With at most 12
    binomial events a clause (6 of ``V``, 6 of the chain of ``A<j>``), a satisfiable
    formula reaches (1 - γ)^{12m}, which is more than 1/2 for γ < 1/(24m): any α
    between the two tells the formulas apart.

    Examples
    --------
    >>> from lpcfg_sk.cfg import sat_grammar
    >>> grammar, sentence = sat_grammar([(1, 2, -3), (-1, -2, 3)])
    >>> "".join(sentence)
    '101010101010'
    >>> [str(rule) for rule in grammar.rules if rule.lhs in ("S2", "U1=1", "U1=0")]
    ['S2 -> S1 A2', 'U1=0 -> V-1 V1', 'U1=1 -> V1 V-1']
    """
    clauses = _checked(clauses)
    rules = []
    for j in range(len(clauses), 1, -1):
        rules.append((f"S{j}", (f"S{j - 1}", f"A{j}")))
    rules.append(("S1", ("A1",)))
    used = {}
    for j, clause in enumerate(clauses, start=1):
        variables = sorted({abs(literal) for literal in clause})
        for values in product((0, 1), repeat=len(variables)):
            value = dict(zip(variables, values, strict=True))
            if any(value[abs(literal)] == (literal > 0) for literal in clause):
                pairs = [(abs(literal), value[abs(literal)]) for literal in clause]
                used.update(dict.fromkeys(pairs))
                rules.append((f"A{j}", tuple(f"U{r}={y}" for r, y in pairs)))
    for r, y in sorted(used):
        sides = (f"V{r}", f"V-{r}") if y else (f"V-{r}", f"V{r}")
        rules.append((f"U{r}={y}", sides))
    for r in sorted({r for r, _ in used}):
        for sign in ("", "-"):
            rules += [(f"V{sign}{r}", ("0",)), (f"V{sign}{r}", ("1",))]
    return CFG(rules, f"S{len(clauses)}"), ["1", "0"] * (3 * len(clauses))


def assignment_of_tree(tree):
    """Read the assignment off a parse tree of :func:`sat_grammar`'s string.

    Parameters
    ----------
    tree : Tree
        Derivation of the string.

    Returns
    -------
    assignment : dict of int to bool, or None
        Value of each variable; None where the tree contradicts itself, by two rules
        of one ``V``.

    Examples
    --------
    >>> from lpcfg_sk import MarginEMPCFG
    >>> from lpcfg_sk.cfg import assignment_of_tree, sat_grammar
    >>> grammar, sentence = sat_grammar([(1, 1, 1), (-2, -2, -2)])
    >>> model = MarginEMPCFG(grammar).fit([sentence], sample_weight=[100])
    >>> assignment_of_tree(model.predict([sentence])[0])
    {1: True, 2: False}
    """
    assignment = {}
    for label, word in zip(tree.tags(), tree.words(), strict=True):
        if label is None or not label.startswith("V"):
            raise ValueError(f"{label!r} is no nonterminal V of a grammar of 3-SAT")
        r = int(label[1:])
        value = (word == "1") == (r > 0)
        if assignment.setdefault(abs(r), value) != value:
            return None
    return dict(sorted(assignment.items()))


def _checked(clauses):
    clauses = [tuple(clause) for clause in clauses]
    if not clauses:
        raise ValueError("a formula needs at least one clause, got none")
    for j, clause in enumerate(clauses):
        if len(clause) != 3 or not all(
            isinstance(literal, int) and literal != 0 for literal in clause
        ):
            raise ValueError(
                f"clause {j} is {clause}; expected three integers r or -r, r ≥ 1"
            )
    return clauses
