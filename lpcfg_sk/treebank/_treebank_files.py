"""The part of a treebank that knows files."""

__all__ = ["TreebankFiles"]


class TreebankFiles:
    """Bracketed text, and columns that are mapped into memory."""

    def write(self, path, **options):
        """Write one bracketed tree a line.

        Parameters
        ----------
        path : path-like or file
            Where to; a name that ends in ``.gz`` is compressed.
        **options
            See :func:`write_treebank`.
        """
        from lpcfg_sk.treebank._writer import write_treebank

        write_treebank(self, path, **options)

    def save(self, path):
        """Write the columns to a file that :meth:`open` maps into memory.

        The file is put in place in one step: an interrupted save leaves what was
        there as it was.

        Parameters
        ----------
        path : str or path-like
            Where to write. Blocks and the names of their columns are written too.

        See Also
        --------
        write : Write bracketed text.

        Examples
        --------
        >>> import os, tempfile
        >>> from lpcfg_sk import Treebank
        >>> treebank = Treebank(["(S (NP a) (VP b))"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trees.tb")
        ...     treebank.save(path)
        ...     Treebank.open(path) == treebank
        True
        """
        from lpcfg_sk.treebank._storage import save_columns

        save_columns(self, path)

    @classmethod
    def open(cls, path, *, verify=True):
        """Open a file that :meth:`save` wrote, without reading it into memory.

        Columns are mapped: the system reads the pages that are looked at, and takes
        their memory back when it is short of it. A slice is a view of the file.
        Symbol tables are read. The file must not be changed while it is open, which
        replacing it by :meth:`save` does not.

        Parameters
        ----------
        path : str or path-like
            The file.
        verify : bool, default=True
            Whether to read the file once, to compare checksums and to make sure that
            it describes trees, which compiled code relies on. That takes a second or
            two a gigabyte; the header is always checked. With False the file is
            trusted.

        Returns
        -------
        treebank : Treebank
            It pickles by content, so a pickle can travel without the file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        TreebankFormatError
            If the file is foreign, damaged, cut short, or of a later version.

        Examples
        --------
        >>> import os, tempfile
        >>> from lpcfg_sk import Treebank
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trees.tb")
        ...     Treebank(["(S (NP a) (VP b))"]).save(path)
        ...     treebank = Treebank.open(path)
        >>> str(treebank[0])
        '(S (NP a) (VP b))'
        """
        from lpcfg_sk.treebank._storage import open_columns

        return cls._from_state(open_columns(path, verify=verify))
