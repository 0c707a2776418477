"""A component for spaCy: constituents as extension attributes of spans.

spaCy finds it by its name after ``pip install "lpcfg_sk[spacy]"``::

    nlp = spacy.load("en_core_web_sm")
    nlp.add_pipe("lpcfg_sk", config={"path": "parser.lpcfg"})
    sentence = next(nlp("Dogs chase cats.").sents)
    sentence._.parse_string, sentence._.labels

`path` is a file that ``lpcfg_sk.save`` or ``lpcfg-sk train`` wrote. A parser in memory
is set by ``nlp.add_pipe("lpcfg_sk").parser = parser``. Something before it must find
sentences, such as ``nlp.add_pipe("sentencizer")``.

Attributes, as in benepar:

- ``doc._.parse_strings``: the tree of each sentence, in brackets;
- ``span._.parse_string``: the constituent, or the tag of one word, in brackets; None
  if the span is neither;
- ``span._.labels``: its labels from the top, several for unary rules, () if none;
- ``span._.constituents``: the spans of all constituents inside, from the top;
- ``span._.children``, ``span._.parent``: spans of the constituents below and above.

A constituent is a node above the tags. White space is not part of any tree.
"""

from lpcfg_sk.persistence import load, save
from lpcfg_sk.treebank import Tree

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.util import minibatch
except ImportError:
    # Without spaCy the module can be imported, but nothing is registered.
    Language = None

#: Name of the component, and of its entry point in setup.cfg.
NAME = "lpcfg_sk"


class ConstituencyComponent:
    """Parses the sentences of documents.

    Parameters
    ----------
    parser : Parser, default=None
        A fitted parser; can be set later.
    """

    def __init__(self, parser=None):
        self.parser = parser

    def __call__(self, doc):
        """Parse the sentences of one document."""
        return self._parse([doc])[0]

    def pipe(self, stream, *, batch_size=128):
        """Parse the sentences of a stream of documents in batches."""
        for docs in minibatch(stream, batch_size):
            yield from self._parse(list(docs))

    def _parse(self, docs):
        if self.parser is None:
            raise ValueError(
                "the component lpcfg_sk has no parser: add it by nlp.add_pipe("
                '"lpcfg_sk", config={"path": "parser.lpcfg"}), or set its attribute '
                "parser to a fitted one"
            )
        for doc in docs:
            if not doc.has_annotation("SENT_START") and len(doc) > 1:
                raise ValueError(
                    "the component lpcfg_sk needs sentences: put one that finds them "
                    'before it, such as nlp.add_pipe("sentencizer", before="lpcfg_sk")'
                )
        sentences = [[_words(sent) for sent in doc.sents] for doc in docs]
        rows = [
            [w.text for w in words] for group in sentences for words in group if words
        ]
        trees = iter(self.parser.predict(rows)) if rows else iter(())
        for doc, group in zip(docs, sentences, strict=True):
            # Text, because spaCy writes user data to disk.
            doc._.parse_strings = [str(next(trees)) if words else "" for words in group]
        return docs

    def to_disk(self, path, *, exclude=()):
        """Save the parser, as ``nlp.to_disk`` asks for."""
        if self.parser is not None:
            save(self.parser, path)

    def from_disk(self, path, *, exclude=()):
        """Load the parser, as ``spacy.load`` asks for."""
        self.parser = load(path)
        return self


def _words(span):
    """Tokens without white space."""
    return [token for token in span if not token.is_space]


def _nodes(span):
    """List the nodes inside the sentences of a span, from the top.

    Each node is a triple of its span, its labels from the top, and its tree. A chain
    of unary rules is one node; a tag has no labels.
    """
    doc, nodes = span.doc, []
    for sentence, text in zip(doc.sents, doc._.parse_strings, strict=True):
        if not text or sentence.end <= span.start or sentence.start >= span.end:
            continue
        words, tree = _words(sentence), Tree.from_string(text)
        last = None
        for part, (label, i, j) in zip(tree.subtrees(), tree.spans(), strict=True):
            is_tag = len(part) == 1 and isinstance(part[0], str)
            if (i, j) != last:
                nodes.append((doc[words[i].i : words[j - 1].i + 1], [], part))
                last = (i, j)
            if not is_tag:
                nodes[-1][1].append(label)
    return nodes


def _find(span):
    """Return the labels and the tree of a span, () and None where it has none."""
    words = _words(span)
    for part, labels, tree in _nodes(span):
        if words and (part.start, part.end) == (words[0].i, words[-1].i + 1):
            return tuple(labels), tree
    return (), None


def _labels(span):
    return _find(span)[0]


def _parse_string(span):
    tree = _find(span)[1]
    return None if tree is None else str(tree)


def _constituents(span):
    return [
        part
        for part, labels, _ in _nodes(span)
        if labels and span.start <= part.start and part.end <= span.end
    ]


def _parent(span):
    words = _words(span)
    above = [
        part
        for part, labels, _ in _nodes(span)
        if words
        and labels
        and part.start <= words[0].i
        and words[-1].i < part.end
        and (part.start, part.end) != (words[0].i, words[-1].i + 1)
    ]
    # Nodes come from the top, so the last one is the smallest.
    return above[-1] if above else None


def _children(span):
    return [part for part in _constituents(span) if _parent(part) == _whole(span)]


def _whole(span):
    """Strip white space from both ends of a span."""
    words = _words(span)
    return span.doc[words[0].i : words[-1].i + 1] if words else span


def _create(nlp, name, path):
    return ConstituencyComponent(None if path is None else load(path))


if Language is not None:
    Doc.set_extension("parse_strings", default=None)
    for _name, _getter in (
        ("parse_string", _parse_string),
        ("labels", _labels),
        ("constituents", _constituents),
        ("children", _children),
        ("parent", _parent),
    ):
        Span.set_extension(_name, getter=_getter)
    create = Language.factory(NAME, default_config={"path": None}, func=_create)
