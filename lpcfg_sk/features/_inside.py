from lpcfg_sk.features._extractor import _NodeFeatures
from lpcfg_sk.features._templates import INSIDE_TEMPLATES


class InsideFeatures(_NodeFeatures, auto_wrap_output_keys=None):
    """Features φ of the inside tree of each node.

    The inside tree of a node is the subtree below it. The features become the
    sparse block ``"inside"`` of the treebank, one row a node.

    Parameters
    ----------
    templates : "cohen2013" or list of str or callable, default="cohen2013"
        Which features. Names, for a node a with the rule a → b c:

        - ``"left"``, ``"right"``: (a, b) and (a, c);
        - ``"rule"``: a → b c;
        - ``"rule+left"``, ``"rule+right"``: the rule with the one at a child;
        - ``"head"``: a with the tag of its head word;
        - ``"length"``: a with its number of words;
        - ``"word"``: a → x, the only one for pre-terminals.

        ``"cohen2013"`` means all of them. A callable takes a :class:`Node` and
        returns a feature (a str or another hashable), a list of features, or None;
        it runs in Python for each node.
    min_count : int, default=1
        Features that occur at fewer nodes of the training trees are left out.
    scaling : float, default=None
        Multiply feature i by √(M / (count_i + scaling)), with M the number of
        nodes. None leaves indicators, which is what :class:`SpectralLPCFG` expects:
        it scales by itself.

    Attributes
    ----------
    n_features_out_ : int
        Number of features.
    counts_ : ndarray of int, shape (n_features,)
        Number of training nodes with each feature.
    n_nodes_ : int
        Number of nodes in training.
    productions_ : object
        Symbols and rules of the training trees.
    vocabularies_ : list
        For each template the keys of its columns, in order.

    See Also
    --------
    OutsideFeatures : Features of everything around the subtree.

    References
    ----------
    S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2013).
    Experiments with spectral learning of latent-variable PCFGs. NAACL.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.features import InsideFeatures
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))"])
    >>> features = InsideFeatures(templates=["rule", "length", "word"])
    >>> features.fit_transform(trees).blocks["inside"].shape
    (5, 7)
    >>> features.get_feature_names_out()[:3]
    array(['inside:rule=S->NP V', 'inside:rule=NP->D N', 'inside:length=S 3'],
          dtype=object)
    """

    _block = "inside"
    _named = INSIDE_TEMPLATES
