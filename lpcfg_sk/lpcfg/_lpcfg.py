"""The one model of all learners: an L-PCFG in tensor form."""

import numpy as np

import lpcfg_sk
from lpcfg_sk._files import load_arrays, save_arrays
from lpcfg_sk.lpcfg._grammar_arrays import GrammarArrays, check_arrays, conjugate
from lpcfg_sk.lpcfg._mappings import (
    BinaryView,
    LexicalView,
    RootView,
    arrays_of_mappings,
    parameter_frame,
)
from lpcfg_sk.lpcfg._trees import TreesOfGrammar, normalize, why_not_probabilistic
from lpcfg_sk.treebank import SymbolTable, check_treebank, figures_html

_KIND = "LPCFG"
_VERSION = 1


class LPCFG(TreesOfGrammar):
    """A latent-variable PCFG in tensor form.

    A tree has the value that figure 4 of [1]_ computes bottom-up from a tensor for
    each binary rule, a vector for each lexical rule and a vector for each root.
    For a probabilistic grammar these are t(a → b c, h₂, h₃ | h₁, a),
    q(a → x | h, a) and π(a, h); for a grammar learnt by spectral methods they are
    the same up to invertible matrices that cancel (theorem 3), so single
    parameters may be negative. The plain PCFG has one state everywhere. A grammar
    is immutable.

    Make one with :meth:`from_parameters`, or take ``grammar_`` of a learner.

    Attributes
    ----------
    nonterminals : tuple of str
        Names of the nonterminals, sorted.
    words : tuple of str
        Names of the words.
    unknown_word : str or None
        The word whose parameters are used for words that the grammar does not know.
    m : dict of str to int
        Number of latent states of each nonterminal.
    binary : mapping of (a, b, c) to ndarray of shape (m_a, m_b, m_c)
        Parameters of the binary rules.
    lexical : mapping of (a, x) to ndarray of shape (m_a,)
        Parameters of the lexical rules.
    root : mapping of a to ndarray of shape (m_a,)
        Parameters of the roots.
    arrays : GrammarArrays
        The same parameters as flat arrays.
    is_probabilistic : bool
        Whether all parameters are probabilities that sum to one.
    n_parameters : int
        Number of parameters.

    Notes
    -----
    Every grammar is made by :meth:`from_arrays`, also one from a file or a pickle. It
    checks what compiled loops rely on: ids are in range; rules, lexical entries and
    roots are sorted and unique; numbers of states are positive and agree with the
    lengths of the arrays; and values are finite and at most 1e100.

    References
    ----------
    .. [1] Cohen, Stratos, Collins, Foster and Ungar (2014). Spectral learning of
       latent-variable PCFGs: algorithms and sample complexity. JMLR 15.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk import LPCFG
    >>> grammar = LPCFG.from_parameters(
    ...     binary={("S", "A", "A"): np.full((1, 2, 2), 0.25)},
    ...     lexical={("A", "x"): [1.0, 0.5], ("A", "y"): [0.0, 0.5]},
    ...     root={"S": [1.0]},
    ... )
    >>> grammar
    <LPCFG of 2 nonterminals (1 to 2 states), 1 binary rules, 2 words>
    >>> np.exp(grammar.log_prob(["(S (A x) (A y))", "(S (A y) (A y))"])).round(4)
    array([0.1875, 0.0625])
    """

    def __init__(self):
        raise TypeError(
            "Make a grammar with LPCFG.from_parameters(binary=..., lexical=..., "
            "root=...), or fit a learner and take its grammar_."
        )

    # -- construction ----------------------------------------------------------

    @classmethod
    def from_arrays(cls, nonterminals, words, arrays, *, unknown_word=None):
        """Make a grammar from flat arrays.

        Parameters
        ----------
        nonterminals, words : sequence of str
            Names, in the order of the ids; none occurs twice.
        arrays : GrammarArrays
            The parameters.
        unknown_word : str, default=None
            The member of `words` that stands for words not among them.

        Returns
        -------
        LPCFG
        """
        self = object.__new__(cls)
        self._labels = SymbolTable(nonterminals)
        self._words = SymbolTable(words)
        for kind, table in (("nonterminal", self._labels), ("word", self._words)):
            if len(set(table.strings)) != len(table):
                raise ValueError(f"A {kind} is named twice.")
        if len(arrays.n_states) != len(self._labels):
            raise ValueError(
                f"n_states has {len(arrays.n_states)} entries for "
                f"{len(self._labels)} nonterminals."
            )
        if unknown_word is not None and unknown_word not in self._words:
            raise ValueError(f"unknown_word {unknown_word!r} is not among the words.")
        self._arrays = check_arrays(arrays, len(self._words))
        self.unknown_word = unknown_word
        self._rule_keys = self.arrays.rule_keys()
        self._lexical_keys = self.arrays.lexical_keys()
        self._normalized = None
        return self

    @classmethod
    def from_parameters(
        cls, binary=None, lexical=None, root=None, *, unknown_word=None
    ):
        """Make a grammar from mappings of rules to arrays.

        Parameters
        ----------
        binary : mapping of (a, b, c) to array-like of shape (m_a, m_b, m_c)
            Parameters of the rules a → b c.
        lexical : mapping of (a, x) to array-like of shape (m_a,)
            Parameters of the rules a → x.
        root : mapping of a to array-like of shape (m_a,)
            Parameters of the roots.
        unknown_word : str, default=None
            The word of `lexical` that stands for words not named there.

        Returns
        -------
        LPCFG

        Raises
        ------
        ValueError
            If shapes disagree on the number of states of a nonterminal, or a
            value is not finite.
        """
        nonterminals, words, arrays = arrays_of_mappings(binary, lexical, root)
        return cls.from_arrays(nonterminals, words, arrays, unknown_word=unknown_word)

    def _replace(self, **values):
        """Return the same rules with other values of their parameters.

        Parameters
        ----------
        **values : ndarray of float64
            Fields of `arrays`: `binary`, `lexical` and `root`.

        Returns
        -------
        LPCFG
        """
        return self.from_arrays(
            self.nonterminals,
            self.words,
            self.arrays._replace(**values),
            unknown_word=self.unknown_word,
        )

    # -- parameters ------------------------------------------------------------

    @property
    def arrays(self):
        """The parameters as flat arrays."""
        return self._arrays

    @property
    def nonterminals(self):
        """Names of the nonterminals."""
        return self._labels.strings

    @property
    def words(self):
        """Names of the words."""
        return self._words.strings

    @property
    def m(self):
        """Number of latent states of each nonterminal."""
        return dict(zip(self.nonterminals, self.arrays.n_states.tolist(), strict=True))

    @property
    def n_parameters(self):
        """Number of parameters."""
        return sum(
            len(values)
            for values in (self.arrays.binary, self.arrays.lexical, self.arrays.root)
        )

    @property
    def binary(self):
        """Tensors of the binary rules, by (a, b, c)."""
        return BinaryView(self)

    @property
    def lexical(self):
        """Vectors of the lexical rules, by (a, x)."""
        return LexicalView(self)

    @property
    def root(self):
        """Vectors of the roots, by a."""
        return RootView(self)

    @property
    def is_probabilistic(self):
        """Whether the parameters are probabilities.

        True where none is negative, the rules of each state that can be reached
        sum to one and so do the roots (within 1e-6).
        """
        if self._normalized is None:
            self._normalized = why_not_probabilistic(self) is None
        return self._normalized

    def normalized(self):
        """Return the grammar with each state's rules summing to one.

        Returns
        -------
        LPCFG
            Parameters divided by their sums; a state without any rule keeps its
            zeros.

        Raises
        ------
        ValueError
            If a parameter is negative.
        """
        return normalize(self)

    def describe_state(self, nonterminal, state, *, top=10):
        """Most probable words and rules of a latent state.

        Parameters
        ----------
        nonterminal : str
            The nonterminal a.
        state : int
            The state h, from 0.
        top : int, default=10
            Number of words or rules.

        Returns
        -------
        DataFrame
            See :func:`lpcfg_sk.inspection.describe_state`.
        """
        return lpcfg_sk.inspection.describe_state(self, nonterminal, state, top=top)

    # -- what the grammar computes ---------------------------------------------

    def sentence_log_prob(self, X, **options):
        """Log probability of each sentence, the sum over all its trees.

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words are parsed; given tags restrict the leaves.
        **options
            Passed to the chart (limits and number of threads).

        Returns
        -------
        ndarray of float64, shape (n_sentences,)
            -inf where there is no tree or the sum is not positive.
        """
        X = check_treebank(X, estimator="LPCFG", allow_empty=True)
        return lpcfg_sk.parsing.sentence_log_prob(self, X, **options)

    def marginals(self, X, **options):
        """Marginals μ(a, i, j) of each sentence (figures 3 and 5).

        Parameters
        ----------
        X : Treebank or iterable of sentences
            Only the words are parsed; given tags restrict the leaves.
        **options
            Passed to the chart (limits and number of threads).

        Returns
        -------
        list of DataFrame
            One per sentence, with the columns label, start, end, marginal.
        """
        X = check_treebank(X, estimator="LPCFG", allow_empty=True)
        return lpcfg_sk.parsing.marginals(self, X, **options)

    def conjugate(self, transforms):
        """Change the basis of the latent states (theorem 3).

        Parameters
        ----------
        transforms : mapping of str to array-like of shape (m_a, m_a)
            An invertible G for some or all nonterminals; the identity for others.

        Returns
        -------
        LPCFG
            All tree values, sentence values and marginals are the same.

        Notes
        -----
        Inside vectors become :math:`b (G^a)^{-1}`, outside vectors
        :math:`G^a β`.
        """
        return self._replace(**conjugate(self.arrays, self._labels, transforms))

    def to_wta(self):
        """Return the weighted tree automaton with the same values.

        Returns
        -------
        WTA
        """
        return lpcfg_sk.WTA.from_pcfg(self)

    def to_frame(self):
        """All parameters, one per row.

        Returns
        -------
        DataFrame
            Columns kind (binary, lexical, root), parent, state, left, left_state,
            right, right_state, word and value; states are -1 and names missing
            where they do not apply.

        Examples
        --------
        >>> from lpcfg_sk import LPCFG
        >>> grammar = LPCFG.from_parameters(
        ...     lexical={("A", "x"): [0.75], ("A", "y"): [0.25]}, root={"A": [1.0]}
        ... )
        >>> grammar.to_frame()[["kind", "parent", "state", "word", "value"]]
              kind parent  state word  value
        0  lexical      A      0    x   0.75
        1  lexical      A      0    y   0.25
        2     root      A      0  NaN   1.00
        """
        return parameter_frame(self)

    # -- files -----------------------------------------------------------------

    def save(self, path):
        """Write the grammar to a file, in one step and without pickle.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        """
        meta = {
            "nonterminals": list(self.nonterminals),
            "words": list(self.words),
            "unknown_word": self.unknown_word,
        }
        save_arrays(path, _KIND, _VERSION, meta, self.arrays._asdict())

    @classmethod
    def load(cls, path):
        """Read a grammar that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        LPCFG

        Raises
        ------
        ValueError
            If the file is damaged, foreign, too new, or its content is not a
            valid grammar.
        """
        _, meta, arrays = load_arrays(path, _KIND, _VERSION)
        try:
            return cls.from_arrays(
                meta["nonterminals"],
                meta["words"],
                GrammarArrays(**arrays),
                unknown_word=meta["unknown_word"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} does not hold a valid grammar: {error}"
            ) from error

    # -- Python ----------------------------------------------------------------

    def __eq__(self, other):
        if not isinstance(other, LPCFG):
            return NotImplemented
        return (
            self.nonterminals == other.nonterminals
            and self.words == other.words
            and self.unknown_word == other.unknown_word
            and all(map(np.array_equal, self.arrays, other.arrays))
        )

    def __hash__(self):
        return hash((self.nonterminals, self.words, self.n_parameters))

    def __reduce__(self):
        return _restore, (
            self.nonterminals,
            self.words,
            tuple(self.arrays),
            self.unknown_word,
        )

    def __repr__(self):
        states = self.arrays.n_states
        if len(states) and states.min() != states.max():
            span = f"{states.min()} to {states.max()} states"
        else:
            span = f"{states.max(initial=0)} states"
        return (
            f"<LPCFG of {len(self.nonterminals)} nonterminals ({span}), "
            f"{len(self.arrays.rule_parent)} binary rules, {len(self.words)} words>"
        )

    def _repr_html_(self):
        a, states = self.arrays, self.arrays.n_states
        n_rules = np.bincount(
            np.concatenate([a.rule_parent, a.lex_label]), minlength=len(states)
        )
        # Of nonterminals with as many states those with more rules come first.
        most = np.lexsort((-n_rules, -states))[:5].tolist()
        figures = {
            "nonterminals": len(self.nonterminals),
            "latent states": int(states.sum()),
            "most states": ", ".join(
                f"{self.nonterminals[i]} {states[i]}" for i in most
            ),
            "binary rules": len(self.arrays.rule_parent),
            "lexical rules": len(self.arrays.lex_label),
            "words": len(self.words),
            "roots": ", ".join(
                self.nonterminals[i] for i in self.arrays.root_label[:5].tolist()
            ),
            "probabilities": "yes" if self.is_probabilistic else "no (observable form)",
        }
        return figures_html("LPCFG", figures)


def _restore(nonterminals, words, arrays, unknown_word):
    return LPCFG.from_arrays(
        nonterminals, words, GrammarArrays(*arrays), unknown_word=unknown_word
    )
