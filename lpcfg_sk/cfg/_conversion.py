"""The L-PCFG of a context-free grammar: trees with the same probabilities.

An L-PCFG has binary rules over nonterminals and rules of one word. Trees of other rules
are written as :class:`TreeBinarizer` writes them: a chain of unary rules is one label,
long right-hand sides are split from the left, and a word that has siblings has the
label of bare words, whose latent state says which word it is.
"""

from collections import defaultdict

import numpy as np

from lpcfg_sk._ragged import offsets
from lpcfg_sk.cfg._rules import rules_by_lhs
from lpcfg_sk.lpcfg import LPCFG, GrammarArrays
from lpcfg_sk.treebank import BARE, SymbolTable, encode_label

#: Begins the label of a word that has siblings, where each such word has its own label.
LITERAL = "\0literal "

# Unary rules without cycles can still have exponentially many chains.
_MOST_CHAINS = 100_000


def is_binary(grammar):
    """Return whether all rules are A → B C or A → x, and no A has both kinds.

    The rules of an implicit start symbol, which is not a node of trees, do not count.
    """
    kinds = {(rule.lhs, rule.terminal) for rule in grammar.rules}
    if grammar.implicit_start:
        kinds = {kind for kind in kinds if kind[0] != grammar.start}
    return len(kinds) == len({lhs for lhs, _ in kinds}) and all(
        terminal in ((True,), (False, False)) for _, terminal in kinds
    )


def binary_lpcfg(grammar, theta):
    """Make the L-PCFG of a grammar whose trees are binary already.

    Parameters
    ----------
    grammar : CFG
        A grammar that :func:`is_binary` accepts.
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules; those of zero are left out.

    Returns
    -------
    LPCFG
        With one state per nonterminal, over the same labels.
    """
    tables = grammar.tables()
    names = [
        name
        for name in grammar.nonterminals
        if not (grammar.implicit_start and name == grammar.start)
    ]
    names, words = sorted(names), sorted(grammar.terminals)
    label = SymbolTable(grammar.nonterminals).map_to(names)
    word = SymbolTable(grammar.terminals).map_to(words)
    n_symbols = tables.n_nonterminals + tables.n_terminals
    parent, item = label[tables.rule_lhs], tables.rule_item
    # Only the rules of an implicit start symbol, which has no label, are unary.
    is_root = (parent < 0) & (theta > 0)
    is_binary_rule = (item >= n_symbols) & (theta > 0)
    is_word = (parent >= 0) & (item < n_symbols) & (theta > 0)
    root = label[item[is_root]], theta[is_root]
    if not grammar.implicit_start:
        root = label[[tables.start]], np.ones(1)
    pair = item[is_binary_rule] - n_symbols
    rule = (
        parent[is_binary_rule],
        label[tables.trie_left[pair]],
        label[tables.trie_right[pair]],
    )
    entry = word[item[is_word] - tables.n_nonterminals], parent[is_word]
    by_rule, by_word, by_root = map(np.lexsort, (rule[::-1], entry[::-1], root[:1]))
    parent, left, right = (column[by_rule] for column in rule)
    arrays = GrammarArrays(
        n_states=np.ones(len(names), dtype=np.int32),
        rule_parent=parent,
        rule_left=left,
        rule_right=right,
        rule_offset=np.arange(len(parent) + 1),
        binary=theta[is_binary_rule][by_rule],
        word_offset=offsets(np.bincount(entry[0], minlength=len(words))),
        lex_label=entry[1][by_word],
        lex_offset=np.arange(len(by_word) + 1),
        lexical=theta[is_word][by_word],
        root_label=root[0][by_root],
        root_offset=np.arange(len(by_root) + 1),
        root=root[1][by_root],
    )
    return LPCFG.from_arrays(names, words, arrays)


def encoded_lpcfg(grammar, theta, *, literals=False):
    """Make the L-PCFG of any grammar without cycles of unary rules.

    Parameters
    ----------
    grammar : CFG
        Rules with right-hand sides of any length.
    theta : ndarray of float64, shape (n_rules,)
        Probabilities of the rules; those of zero are left out.
    literals : bool, default=False
        Whether each word that has siblings gets its own label, which begins with
        `LITERAL`, instead of a state of one common label. All nonterminals then have
        one state.

    Returns
    -------
    LPCFG
        Over labels that :func:`~lpcfg_sk.treebank.unbinarize` reads. A tree has the
        probability that it has under the grammar.

    Raises
    ------
    ValueError
        If unary rules have a cycle.
    """
    return _Encoder(grammar, theta, literals).lpcfg()


class _Encoder:
    """Labels and parameters of the L-PCFG of one grammar."""

    def __init__(self, grammar, theta, literals):
        self.grammar = grammar
        self.unary, self.words, self.phrases = (defaultdict(list) for _ in range(3))
        for rule, value in zip(grammar.rules, theta.tolist(), strict=True):
            if value == 0:
                continue
            if len(rule.rhs) > 1:
                self.phrases[rule.lhs].append((rule, value))
            elif rule.terminal[0]:
                self.words[rule.lhs].append((rule.rhs[0], value))
            else:
                self.unary[rule.lhs].append((rule.rhs[0], value))
        bare = sorted({s for s, t in _symbols_beside(self.phrases) if t})
        # Label and state of each word that has siblings.
        self.bare = {
            word: (encode_label([LITERAL + word]), 0) if literals else (BARE, state)
            for state, word in enumerate(bare)
        }
        self.n_states = {BARE: len(bare)}
        self.chains, self.n_chains = {}, 0
        for symbol in rules_by_lhs(grammar.rules):
            self._chains_from(symbol, ())
        self.binary = {}

    def _chains_from(self, symbol, above):
        """Return the chains of unary rules from a symbol and their probabilities.

        Each is a pair (symbols, probability of the chain's rules alone).
        """
        if symbol in above:
            cycle = [*above[above.index(symbol) :], symbol]
            raise ValueError(
                f"the unary rules {' -> '.join(cycle)} form a cycle, which gives a "
                "sentence infinitely many trees, and no L-PCFG has them all; remove "
                "one of these rules, or learn from binarised trees with make_parser"
            )
        if symbol not in self.chains:
            chains = [((symbol,), 1.0)]
            for child, value in self.unary[symbol]:
                chains += [
                    ((symbol, *chain), value * below)
                    for chain, below in self._chains_from(child, (*above, symbol))
                ]
            self.chains[symbol] = chains
            self.n_chains += len(chains)
            if self.n_chains > _MOST_CHAINS:
                raise ValueError(
                    f"the grammar has more than {_MOST_CHAINS} chains of unary rules; "
                    "an L-PCFG would need a nonterminal for each"
                )
        return self.chains[symbol]

    def lpcfg(self):
        """Return the L-PCFG."""
        start = self.grammar.start
        root = {
            label: np.array([value])
            for label, _, value in self._variants(start, self.grammar.implicit_start)
        }
        lexical, done = {}, set()
        for symbol, chains in self.chains.items():
            # An implicit start symbol is not a node of the trees.
            if self.grammar.implicit_start and symbol == start:
                continue
            for chain, _ in chains:
                lowest = chain[-1]
                self._add_phrases(encode_label(chain), lowest, done)
                label, total = self._word_label(chain), _total(self.words[lowest])
                for word, value in self.words[lowest]:
                    lexical[label, word] = np.array([value / total])
        for word, (label, state) in self.bare.items():
            lexical[label, word] = np.eye(self.n_states.get(label, 1))[state]
        return LPCFG.from_parameters(self.binary, lexical, root)

    def _variants(self, symbol, skip_first=False):
        """Return (label, state, probability) of the nodes that a symbol can be."""
        variants = []
        for chain, value in self.chains[symbol]:
            shown = chain[1:] if skip_first else chain
            phrases, words = (
                _total(kind[chain[-1]]) for kind in (self.phrases, self.words)
            )
            if phrases:
                variants.append((encode_label(shown), 0, value * phrases))
            if words:
                variants.append((self._word_label(shown), 0, value * words))
        return variants

    def _word_label(self, chain):
        """Return the label of a chain that ends in a word.

        It is marked where the lowest symbol also has longer rules.
        """
        return encode_label(chain, marked=bool(self.phrases[chain[-1]]))

    def _children(self, symbol, terminal):
        return [(*self.bare[symbol], 1.0)] if terminal else self._variants(symbol)

    def _add_phrases(self, label, lowest, done):
        """Add the rules of a node, and those of the intermediate nodes below it."""
        total = _total(self.phrases[lowest])
        for rule, value in self.phrases[lowest]:
            symbols = list(zip(rule.rhs, rule.terminal, strict=True))
            parent = label
            weight = value / total
            while True:
                left = self._children(*symbols[0])
                rest = symbols[1:]
                if len(rest) == 1:
                    self._add_rule(parent, left, self._children(*rest[0]), weight)
                    break
                # The same symbols are left over from several rules.
                names = [f"'{s}'" if t else s for s, t in rest]
                below = encode_label([lowest], intermediate=True, siblings=names)
                self._add_rule(parent, left, [(below, 0, 1.0)], weight)
                if below in done:
                    break
                done.add(below)
                parent, symbols, weight = below, rest, 1.0

    def _add_rule(self, parent, left, right, weight):
        for b, left_state, left_value in left:
            for c, right_state, right_value in right:
                shape = (self.n_states.get(x, 1) for x in (b, c))
                tensor = self.binary.setdefault((parent, b, c), np.zeros((1, *shape)))
                tensor[0, left_state, right_state] += weight * left_value * right_value


def _total(rules):
    return sum(value for _, value in rules)


def _symbols_beside(phrases):
    for rules in phrases.values():
        for rule, _ in rules:
            yield from zip(rule.rhs, rule.terminal, strict=True)


def without_literals(trees):
    """Restore the words that have siblings in trees of an L-PCFG with literals.

    Parameters
    ----------
    trees : Treebank
        Trees, not binarised.

    Returns
    -------
    Treebank
    """
    names = trees.labels.strings
    kept = [-1 if name.startswith(LITERAL) else i for i, name in enumerate(names)]
    return trees.replace(label=np.array([*kept, -1])[trees.label])
