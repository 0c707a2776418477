"""Tags of words: which labels they allow, and which tags are likely neighbours."""

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import splu

from lpcfg_sk._kernels._coarse_words import Neighbours
from lpcfg_sk._ragged import find_keys
from lpcfg_sk.treebank import decode_label

# Chosen on held-out training trees of WSJ, see TagBackoff: κ,
_WITHIN = 0.1
# η,
_NOVEL = 1.0
# and δ.
_OTHER = 0.05

# Least probability with which a spine of a tree ends at a node, so that sums converge.
_END = 1e-6


class TagBackoff:
    r"""Values of words under the labels that given tags allow.

    A tag t stands for several labels of a binarised grammar, NN also for NP+NN. A word
    x that occurs as NN in training, but never as a noun phrase of its own, may be one.
    A word may have a tag that it never had in training. A tag may be a mistake, or the
    grammar may have no tree with it. So the value of the word under label a is

    .. math:: v'(a, x) = v(a, x) + κ\, p(x | t) Σ_{x'} v(a, x')

    where a has the tag t, a mixture of the word's own labels and those of the tag. If
    the word never had the tag, it is

    .. math:: v'(a, x) = η\, p(x)\, o(a) \Big/ Σ_{a'} p(a') o(a')

    with the values o(a) of the unknown word, summed over the labels of the tag. Under
    labels of other tags it is δ v(a, x). The same holds for vectors over states.
    Sentences whose words have no tags are not affected.

    Parameters
    ----------
    coarse : LPCFG
        A plain PCFG, which gives p(x | t) and p(a).
    binarized : bool, default=False
        Whether the labels are those of a :class:`TreeBinarizer`.
    within, novel, other : float
        κ, η and δ.
    """

    def __init__(
        self, coarse, *, binarized=False, within=_WITHIN, novel=_NOVEL, other=_OTHER
    ):
        arrays = coarse.arrays
        self.coarse = coarse
        self.other = other
        self._within, self._novel = within, novel
        self._tags = {}
        names = [lowest_label(a, binarized) for a in coarse.nonterminals]
        tag = np.array([self._tags.setdefault(x, len(self._tags)) for x in names], int)
        counts = expected_label_counts(arrays, arrays.binary, arrays.root)
        mass = counts[arrays.lex_label] * arrays.lexical
        n_words, n_tags = len(arrays.word_offset) - 1, max(len(self._tags), 1)
        word = np.repeat(np.arange(n_words), np.diff(arrays.word_offset))
        entry_tag = tag[arrays.lex_label]
        pairs = word * np.int64(n_tags) + entry_tag
        self._pairs, place = np.unique(pairs, return_inverse=True)
        self._of_pair = np.bincount(place, mass, minlength=len(self._pairs))
        self._of_word = np.bincount(word, mass, minlength=n_words)
        self._of_tag = np.bincount(entry_tag, mass, minlength=n_tags)
        unknown = unknown_weights(arrays)[word] * mass
        self._unknown_of_tag = np.bincount(entry_tag, unknown, minlength=n_tags)

    def shares(self, treebank):
        """Return the weights of any word and of the unknown word for each token.

        Parameters
        ----------
        treebank : Treebank
            Sentences.

        Returns
        -------
        any_word, unknown : ndarray of float64, shape (n_tokens,)
            Zero where a token has no tag, or a tag that no label stands for.
        """
        word = self.coarse.encode(treebank)[1].astype(np.int64)
        known = [
            self._tags.get(lowest_label(name, treebank.binarized), -1)
            for name in treebank.labels
        ]
        tag = np.array([*known, -1], dtype=np.int64)[treebank.tag]
        any_word, unknown = np.zeros((2, len(word)))
        tokens = np.flatnonzero((word >= 0) & (tag >= 0))
        word, tag = word[tokens], tag[tokens]
        place = find_keys(self._pairs, word * len(self._tags) + tag)
        own = np.append(self._of_pair, 0.0)[place]
        any_word[tokens] = self._within * _ratio(own, self._of_tag[tag])
        novel = self._novel * _ratio(self._of_word[word], self._unknown_of_tag[tag])
        unknown[tokens] = np.where(own > 0.0, 0.0, novel)
        return any_word, unknown


def _ratio(part, whole):
    """Divide, 0 where the divisor is."""
    whole = np.broadcast_to(whole, part.shape)
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def lowest_label(label, binarized):
    """Return the tag that a label over one word stands for, None for a bare word."""
    if not binarized:
        return label
    chain = decode_label(label).chain
    return chain[-1] if chain else None


def unknown_weights(arrays):
    """Return weights of the words that make up the unknown word.

    Every known word has the same weight, whatever its frequency, so that labels with
    many different words (open classes) get most of the mass.
    """
    n_words = len(arrays.word_offset) - 1
    word = np.repeat(np.arange(n_words), np.diff(arrays.word_offset))
    entry = np.repeat(np.arange(len(word)), np.diff(arrays.lex_offset))
    size = np.bincount(word[entry], weights=np.abs(arrays.lexical), minlength=n_words)
    weight = np.divide(1.0, size, out=np.zeros(n_words), where=size > 0)
    return weight / max(weight.sum(), np.finfo(float).tiny)


def expected_label_counts(arrays, probabilities, root, n_steps=200):
    """Return the expected number of nodes of each nonterminal in a tree of a PCFG.

    Parameters
    ----------
    arrays : GrammarArrays
        Symbols and rules.
    probabilities : ndarray of float64, shape (n_rules,)
        One weight per rule.
    root : ndarray of float64, shape (n_roots,)
        One weight per root.
    n_steps : int, default=200
        Largest depth that counts, so that the sum is finite even for grammars with
        infinite trees and for weights that are not probabilities.

    Returns
    -------
    ndarray of float64, shape (n_nonterminals,)
    """
    n_labels = len(arrays.n_states)
    level = np.bincount(arrays.root_label, weights=root, minlength=n_labels)
    total = level.copy()
    for _ in range(n_steps):
        mass = probabilities * level[arrays.rule_parent]
        level = np.bincount(arrays.rule_left, weights=mass, minlength=n_labels)
        level += np.bincount(arrays.rule_right, weights=mass, minlength=n_labels)
        total += level
        if not 1e-12 * total.sum() < level.sum() < 1e100:
            break
    return total


def neighbouring_tags(arrays, tag_of_label, counts):
    """Compute which tags a plain PCFG expects next to each other and next to its nodes.

    Parameters
    ----------
    arrays : GrammarArrays
        The PCFG.
    tag_of_label : ndarray of int32, shape (n_nonterminals,)
        The tag of each nonterminal over a word, -1 for none.
    counts : ndarray of float64, shape (n_nonterminals,)
        Expected number of nodes of each nonterminal.

    Returns
    -------
    Neighbours
    """
    parent, left, right = arrays.rule_parent, arrays.rule_left, arrays.rule_right
    n_labels = len(counts)
    over_word = np.flatnonzero(tag_of_label >= 0)
    tag = tag_of_label[over_word]
    end = int(tag.max(initial=-1)) + 1
    is_tag = np.zeros((n_labels, end + 1))
    is_tag[over_word, tag] = 1.0
    root = np.zeros(n_labels)
    root[arrays.root_label] = arrays.root
    spines = [_spine(arrays, parent, child) for child in (left, right)]
    # Tags at the left and right end of the words below each nonterminal.
    first, last = (spine.solve(is_tag) for spine in spines)
    mass = counts[parent] * arrays.binary
    shape = (n_labels, n_labels)
    # Tags before and after the nodes of each nonterminal. They come from the sister,
    # and nodes along the facing edge have the same ones.
    before = csc_matrix((mass, (right, left)), shape=shape) @ last
    after = csc_matrix((mass, (left, right)), shape=shape) @ first
    before[:, end] += root
    after[:, end] += root
    before = np.maximum(spines[0].solve(before, trans="T"), 0.0)
    after = np.maximum(spines[1].solve(after, trans="T"), 0.0)
    of_tag = np.append(np.bincount(tag, counts[over_word], minlength=end), 1.0)
    follows = _ratio(is_tag.T @ after, of_tag[:, np.newaxis])
    follows[end] = root @ first
    share = np.zeros(n_labels)
    share[over_word] = _ratio(counts[over_word], of_tag[tag])
    return Neighbours(
        share,
        np.maximum(follows, 0.0),
        np.ascontiguousarray(_ratio(before, of_tag).T),
        np.ascontiguousarray(_ratio(after, counts[:, np.newaxis]).T),
    )


def _spine(arrays, parent, child):
    """Factorise I - P, where P goes from nodes to their first, or last, child."""
    n_labels = len(arrays.n_states)
    total = np.bincount(parent, arrays.binary, minlength=n_labels)
    step = arrays.binary * ((1.0 - _END) / np.maximum(total, 1.0))[parent]
    steps = csc_matrix((step, (parent, child)), shape=(n_labels, n_labels))
    return splu(identity(n_labels, format="csc") - steps)
