"""A parser with the interface of NLTK's parsers."""


def nltk_parser(parser):
    """Wrap a fitted parser as an ``nltk.parse.api.ParserI``."""
    try:
        from nltk.parse.api import ParserI
    except ImportError:
        raise ImportError(
            "to_nltk_parser needs nltk: pip install nltk (or lpcfg_sk[nltk])"
        ) from None

    class NltkParser(ParserI):
        """Trees of lpcfg_sk for NLTK, the best first."""

        def __repr__(self):
            return f"<NLTK parser of {parser[-1]}>"

        def grammar(self):
            """Raise an error: NLTK's grammars have no latent states."""
            raise NotImplementedError(
                "a grammar of lpcfg_sk is not one of NLTK; it is grammar_ of the "
                "learner, parser[-1]"
            )

        def parse_sents(self, sents, k=1):
            """Yield an iterator over the best k trees of each sentence.

            A sentence without a parse has none.
            """
            if k > 1:
                for parses in parser.parse_kbest(sents, k):
                    yield (tree.to_nltk() for tree, _ in parses)
                return
            trees, status = parser.predict(sents, return_status=True)
            found = status["status"].isin(["parsed", "coarser"])
            for tree, has_parse in zip(trees, found, strict=True):
                yield iter([tree.to_nltk()] if has_parse else [])

        def parse(self, sent, k=1):
            """Return an iterator over the best k trees of a sentence."""
            return next(self.parse_sents([sent], k))

    return NltkParser()
