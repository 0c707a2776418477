"""NEGRA export format to columns, around the compiled scanner."""

import numpy as np

from lpcfg_sk._kernels import _export as kernel
from lpcfg_sk._kernels._scanner import (
    EMPTY,
    NO_CHILD,
    NO_LABEL,
    POSITION,
    REPORT_SIZE,
    STRAY_TEXT,
    TOO_DEEP,
    UNCLOSED,
)
from lpcfg_sk.treebank._brackets import _MESSAGES, _UNLIMITED, ROOT

NO_EDGE = "--"


class ExportScanner:
    """Scanner of the export format that is fed one block after another.

    Parameters
    ----------
    columns : TreeColumns
        Takes the trees.
    max_depth : int, default=None
        Greatest depth of a tree.
    keep_functions : bool, default=False
        Whether edge labels are appended to labels.
    skip : bool, default=False
        Pass over faults instead of stopping at the first one.

    Notes
    -----
    What hangs on node 0 gets a common root ``ROOT``, unless it is a single node or
    word whose edge label is ``ROOT``: that is how the writer marks a tree with
    another root. A word whose tag is ``--`` is a word without a pre-terminal.
    """

    messages = {
        **_MESSAGES,
        UNCLOSED: "the sentence that starts here has no #EOS",
        STRAY_TEXT: "text outside of sentences, expected #BOS",
        EMPTY: "a sentence without words",
        NO_CHILD: "a node without words below it",
        NO_LABEL: "a sentence of one word without a tag",
        TOO_DEEP: "the tree is deeper than max_depth",
        kernel.FEW_FIELDS: "a line with too few fields; expected word, tag, morphology,"
        " edge and parent (with the lemma after the word in format 4)",
        kernel.BAD_PARENT: "the parent is not the number of a node of the sentence",
        kernel.CYCLE: "a node that is its own ancestor",
        kernel.DISCONTINUOUS: "a discontinuous constituent; only trees without "
        "crossing branches can be read, on_error='skip' leaves others out",
        kernel.DEFINED_TWICE: "the node is defined twice",
    }

    def __init__(self, columns, *, max_depth=None, keep_functions=False, skip=False):
        self._columns = columns
        self._root = columns.pool.add(ROOT)
        self._no_edge = columns.pool.add(NO_EDGE)
        self._max_depth = _UNLIMITED if max_depth is None else max_depth
        self._keep_functions = keep_functions
        self._skip = skip
        self.report = np.zeros(REPORT_SIZE, dtype=np.int64)
        self.start_file(b"")

    def start_file(self, text):
        """Forget the state of the file before."""
        self._state = np.zeros(kernel.STATE_SIZE, dtype=np.int64)

    def scan(self, text, final):
        """Scan whole sentences of a block; return how many bytes are done with."""
        array = np.frombuffer(text, dtype=np.uint8)
        lines = kernel.count_lines(array)
        pool = self._columns.pool
        # a line holds four strings of interest: word or number, label, edge, parent
        pool.reserve(4 * lines, array.size)
        self._columns.reserve(lines, 2 * lines, lines)
        block, filled = self._columns.block, self._columns.filled
        edge = np.empty(block.label.size, dtype=np.int32)
        before = filled[1]
        kernel.scan_export(
            array,
            final,
            self._skip,
            self._max_depth,
            pool.multiplier,
            self._root,
            self._no_edge,
            pool.arrays,
            np.empty((lines, kernel.ROW_SIZE), dtype=np.int64),
            np.full(pool.arrays.hashes.size, -1, dtype=np.int32),
            block,
            filled,
            edge,
            self._state,
            self.report,
        )
        if self._keep_functions:
            nodes = slice(before, filled[1])
            self._append_edges(block.label[nodes], edge[nodes])
        return int(self.report[POSITION])

    def _append_edges(self, label, edge):
        with_edge = np.flatnonzero((label >= 0) & (edge != self._no_edge))
        pairs = np.stack([label[with_edge], edge[with_edge]], axis=1)
        pairs, which = np.unique(pairs, axis=0, return_inverse=True)
        pool = self._columns.pool
        names = pool.strings()
        joined = [pool.add(f"{names[a]}-{names[b]}") for a, b in pairs.tolist()]
        joined = np.array(joined, dtype=np.int32)
        label[with_edge] = joined[which.reshape(-1)]
