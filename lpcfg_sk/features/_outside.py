from lpcfg_sk.features._extractor import _NodeFeatures
from lpcfg_sk.features._templates import OUTSIDE_TEMPLATES


class OutsideFeatures(_NodeFeatures, auto_wrap_output_keys=None):
    """Features ψ of the outside tree of each node.

    The outside tree of a node is everything but the subtree below it; the node
    itself is its foot. The features become the sparse block ``"outside"`` of the
    treebank, one row a node.

    Parameters
    ----------
    templates : "cohen2013" or list of str or callable, default="cohen2013"
        Which features. Names, for a foot a:

        - ``"rule"``, ``"rule2"``, ``"rule3"``: the one, two and three rules above,
          the path to the foot marked;
        - ``"parent"``, ``"grandparent"``: a with the labels above;
        - ``"head"``: a with the tag of the first head word on the path to the root
          that is not the foot's own head;
        - ``"left"``, ``"right"``: a with the number of words before and after.

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
    InsideFeatures : Features of the subtree below a node.

    References
    ----------
    S. B. Cohen, K. Stratos, M. Collins, D. P. Foster and L. Ungar (2013).
    Experiments with spectral learning of latent-variable PCFGs. NAACL.

    Examples
    --------
    >>> from lpcfg_sk import Treebank
    >>> from lpcfg_sk.features import OutsideFeatures
    >>> trees = Treebank(["(S (NP (D the) (N dog)) (V barks))"])
    >>> features = OutsideFeatures(templates=["rule2", "left"])
    >>> features.fit_transform(trees).blocks["outside"].shape
    (5, 9)
    >>> features.get_feature_names_out()[:2]
    array(['outside:rule2=S->[NP] V | TOP->[S]',
           'outside:rule2=S->NP [V] | TOP->[S]'], dtype=object)
    """

    _block = "outside"
    _named = OUTSIDE_TEMPLATES
