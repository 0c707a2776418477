"""Mutations of good text: nothing but TreebankFormatError may come of them.

``LPCFG_SK_FUZZ`` sets their number.
"""

import io
import os
import random
import warnings

import pytest

from lpcfg_sk import TreebankFormatError, read_treebank
from lpcfg_sk.exceptions import TreebankWarning

N_MUTATIONS = int(os.environ.get("LPCFG_SK_FUZZ", "2000"))
BRACKETS = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (NP-PRD=2 (-LRB- -LRB-) (NN chäirman) (-RRB- -RRB-)
        (SBAR (WHNP-3 (-NONE- 0) )
          (S (NP-SBJ (-NONE- *T*-3) ) (VP (-NONE- *?*) )))))
    (. .) ))
(ROOT (S (NP (PRP We)) (VP (VBD saw) (NP (NN 東京)) , b)))
( (X (IN @)))
"""
EXPORT = """#FORMAT 3
#BOS 1 2 899973978 1 %% x
Mögen\tVMFIN\t--\tHD\t502
Puristen\tNN\t--\tNK\t500
aller\tPIAT\t--\tNK\t501
Länder\tNN\t--\tNK\t501
.\t$.\t--\t--\t0
#500\tNP\t--\tSB\t502
#501\tNP\t--\tAG\t500
#502\tS\t--\t--\t0
#EOS 1
#BOS 2
ja\tITJ\t--\t--\t0
#EOS 2
"""
PIECES = [
    *(b"(", b")", b"()", b"( ", b" )", b"((", b"))", b"\n(", b"\n", b"\r\n", b" "),
    *(b"\t", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"-NONE-"),
    *(b"(-NONE- *)", b"#BOS 3\n", b"#EOS 3\n", b"#500", b"500", b"0", b"%%", b"--"),
]


def mutated(data, rng):
    """Change some bytes: replaced, inserted, cut out, repeated, moved, cut off."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        i = rng.randrange(len(data) + 1)
        j = min(len(data), i + rng.choice((0, 1, 2, 10, 80)))
        kind = rng.randrange(6)
        if kind == 0:
            data[i : i + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            data[i:i] = rng.choice(PIECES)
        elif kind == 2:
            del data[i:j]
        elif kind == 3:
            data[i:i] = data[i:j]
        elif kind == 4:
            piece = data[i:j]
            del data[i:j]
            k = rng.randrange(len(data) + 1)
            data[k:k] = piece
        elif rng.random() < 0.2:
            del data[i:]
    return bytes(data)


def check(data, format):
    """Both ways of reading end well, and agree where nothing is wrong."""
    options = {"format": format, "keep_traces": True}
    try:
        strict = read_treebank(io.BytesIO(data), **options)
    except TreebankFormatError as error:
        strict = None
        assert error.file and error.line >= 1 and error.column >= 1
        assert error.tree >= 1
        str(error)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lenient = read_treebank(io.BytesIO(data), on_error="skip", **options)
    assert all(issubclass(w.category, TreebankWarning) for w in caught)
    assert (strict is None) == bool(caught)
    if strict is not None:
        assert strict == lenient
    assert lenient.n_tokens == lenient.token_offsets[-1] == (lenient.size == 1).sum()


def run(source, format, count, rng):
    samples = [source.encode()] if isinstance(source, str) else source
    for number in range(count):
        data = mutated(rng.choice(samples), rng)
        try:
            check(data, format)
        except Exception as error:
            raise AssertionError(f"mutation {number}: {data!r}") from error


@pytest.mark.parametrize(
    "text, format", [(BRACKETS, "ptb"), (EXPORT, "export")], ids=["ptb", "export"]
)
def test_mutations_of_embedded_text(text, format, seed):
    run(text, format, N_MUTATIONS // 4, random.Random(seed))


def test_mutations_of_real_files(seed, wsj_dev):
    from tests.conftest import DATA

    texts = [path.read_bytes() for path in sorted((DATA / "wsj/dev").glob("*.mrg"))]
    # A few trees of each: what matters is the number of mutations, not of bytes.
    heads = [text[: text.rfind(b"\n( (S", 0, 4000)] for text in texts]
    run([head for head in heads if len(head) > 100], "ptb", N_MUTATIONS // 2,
        random.Random(seed))  # fmt: skip
