"""Tokens of raw text, as the Penn Treebank writes them."""


def tokenize(text):
    r"""Split a sentence of raw text into the tokens of the Penn Treebank.

    Parameters
    ----------
    text : str
        One sentence.

    Returns
    -------
    tokens : list of str
        A row for ``predict``. Quotes become two backticks or two apostrophes, brackets
        ``-LRB-`` and ``-RRB-``, and contractions are split (``do n't``).

    Raises
    ------
    ImportError
        If nltk is not installed, whose Treebank tokenizer does the work.

    Examples
    --------
    >>> from lpcfg_sk.treebank import tokenize
    >>> tokenize('He didn\'t say "no" (yet).')
    ['He', 'did', "n't", 'say', '``', 'no', "''", '-LRB-', 'yet', '-RRB-', '.']
    """
    if not isinstance(text, str):
        raise TypeError(
            f"tokenize takes one sentence as a str, got {type(text).__name__}; for "
            "several, [tokenize(text) for text in texts]"
        )
    try:
        from nltk.tokenize import NLTKWordTokenizer
    except ImportError:
        raise ImportError(
            "tokenize needs nltk: pip install nltk (or lpcfg_sk[nltk]); a sentence "
            "whose tokens are separated by spaces needs no tokenizer"
        ) from None
    return NLTKWordTokenizer().tokenize(text, convert_parentheses=True)
