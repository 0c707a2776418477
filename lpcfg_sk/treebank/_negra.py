"""NEGRA export format to columns, around the compiled scanner."""

import numpy as np

from lpcfg_sk._kernels import _negra as kernel
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
from lpcfg_sk.treebank._penn import MESSAGES, ROOT, UNLIMITED

#: Written for a missing edge label or tag.
NO_EDGE = "--"


class NegraScanner:
    """Scanner of the export format, which takes one block after another.

    Parameters
    ----------
    columns : TreeColumns
        Where the trees are collected.
    max_depth : int, default=None
        Greatest depth of a tree.
    keep_functions : bool, default=False
        Whether edge labels are appended to labels.
    skip : bool, default=False
        Whether to pass over faults instead of stopping at the first one.

    Attributes
    ----------
    report : ndarray of int64
        Report of the kernel about the last block.

    Notes
    -----
    The children of node 0 get a common root ``ROOT``, unless there is a single one
    whose edge label is ``ROOT``, which is how the writer marks a tree with another
    root. A word whose tag is ``--`` has no pre-terminal.
    """

    messages = {
        **MESSAGES,
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
        self._keep_functions = keep_functions
        self._settings = kernel.ScanSettings(
            skip=bool(skip),
            max_depth=UNLIMITED if max_depth is None else int(max_depth),
            root=columns.pool.add(ROOT),
            no_edge=columns.pool.add(NO_EDGE),
            multiplier=columns.pool.multiplier,
        )
        self.report = np.zeros(REPORT_SIZE, dtype=np.int64)
        self.start_file(b"")

    def start_file(self, text):
        """Forget the state of the previous file."""
        self._state = np.zeros(kernel.STATE_SIZE, dtype=np.int64)

    def scan(self, text, final):
        """Scan the complete sentences of a block; return how many bytes it scanned."""
        array = np.frombuffer(text, dtype=np.uint8)
        lines = text.count(b"\n") + 1
        pool = self._columns.pool
        # Four strings of a line are kept: word or number, label, edge and parent.
        pool.reserve(4 * lines, array.size)
        self._columns.reserve(lines, 2 * lines, lines)
        block, filled = self._columns.block, self._columns.filled
        edge = np.empty(block.label.size, dtype=np.int32)
        before = filled[1]
        scratch = kernel.Scratch(
            rows=np.empty((lines, kernel.ROW_SIZE), dtype=np.int64),
            row_of=np.full(pool.arrays.hashes.size, -1, dtype=np.int32),
            path=np.empty(lines + 1, dtype=np.int64),
        )
        kernel.scan_negra(
            array,
            final,
            self._settings,
            pool.arrays,
            scratch,
            self._state,
            kernel.ScanOutput(block, filled, edge, self.report),
        )
        if self._keep_functions:
            nodes = slice(before, filled[1])
            self._append_edges(block.label[nodes], edge[nodes])
        return int(self.report[POSITION])

    def _append_edges(self, label, edge):
        with_edge = np.flatnonzero((label >= 0) & (edge != self._settings.no_edge))
        pairs = np.stack([label[with_edge], edge[with_edge]], axis=1)
        pairs, which = np.unique(pairs, axis=0, return_inverse=True)
        pool = self._columns.pool
        names = pool.strings()
        joined = [pool.add(f"{names[a]}-{names[b]}") for a, b in pairs.tolist()]
        joined = np.array(joined, dtype=np.int32)
        label[with_edge] = joined[which.reshape(-1)]
