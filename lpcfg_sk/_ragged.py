"""Ragged data: consecutive pieces of flat arrays, located by offsets or keys."""

import numpy as np


def offsets(lengths):
    """Return the offsets of consecutive pieces of the given lengths.

    Parameters
    ----------
    lengths : array-like of int
        Length of each piece.

    Returns
    -------
    ndarray of int64, one longer than `lengths`
        Piece i is ``out[i]:out[i + 1]``.

    Examples
    --------
    >>> from lpcfg_sk._ragged import offsets
    >>> offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def ragged_indices(starts, lengths):
    """Return the indices of many ranges, one range after the other.

    Parameters
    ----------
    starts, lengths : ndarray of int
        Range i is ``starts[i]:starts[i] + lengths[i]``.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk._ragged import ragged_indices
    >>> ragged_indices(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shift = np.repeat(np.asarray(starts) - (ends - lengths), lengths)
    return np.arange(total, dtype=np.int64) + shift


def find_keys(keys, wanted):
    """Return the position of each wanted key in sorted `keys`, -1 where absent.

    Parameters
    ----------
    keys : ndarray
        Sorted keys, without repetition.
    wanted : ndarray
        Keys to look up.

    Returns
    -------
    ndarray of int64, shape (len(wanted),)

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk._ragged import find_keys
    >>> find_keys(np.array([2, 5, 9]), np.array([9, 3])).tolist()
    [2, -1]
    """
    if len(keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    position = np.searchsorted(keys, wanted)
    position[position == len(keys)] = 0
    return np.where(keys[position] == wanted, position, -1)


def read_only(array):
    """Return a view of an array that cannot be written to.

    Parameters
    ----------
    array : ndarray
        Any array.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk._ragged import read_only
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
