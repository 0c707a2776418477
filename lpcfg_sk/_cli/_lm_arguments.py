"""Arguments of ``lpcfg-sk lm``, declared without importing what it needs."""

import argparse


def add_lm(parser):
    """Train a Kneser-Ney language model on text, or score text with one.

    A line of text is a sentence of tokens with blanks between them. Models are in the
    ARPA format, which other toolkits read too; .gz is compressed.

    train reads the text once, in memory for its distinct n-grams. score writes the
    perplexities, with and without words that the model does not know, or with --tokens
    a line "token TAB log10 probability" for each token, and an empty line after each
    sentence.
    """
    commands = parser.add_subparsers(dest="lm_command", metavar="ACTION", required=True)
    train = commands.add_parser("train", help="train a model").add_argument
    train("text", help="text; - for stdin")
    train("-o", "--output", required=True, help="file of the model, ARPA format")
    train("--order", type=int, default=3, help="length of n-grams (default: 3)")
    train("--stream", action="store_true", help="run the sentences together")
    train("--min-count", type=int, default=1, help="least count of a known word")
    train("--vocabulary", help="file with the known words, one per line")
    train("--cutoffs", type=_numbers, help="least counts of 2-grams, 3-grams, ...")
    score = commands.add_parser("score", help="score text").add_argument
    score("model", help="file in the ARPA format")
    score("text", nargs="?", default="-", help="text; - for stdin")
    score("--tokens", action="store_true", help="write the tokens' log probabilities")
    score("--json", action="store_true", help="write JSON")


def _numbers(text):
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers with commas between them"
        ) from None
