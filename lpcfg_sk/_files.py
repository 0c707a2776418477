"""Files that are complete or absent."""

import contextlib
import os
import secrets

__all__ = ["written_in_one_step"]


@contextlib.contextmanager
def written_in_one_step(path):
    """Open a file that takes its place only when it is complete.

    The file is written beside its place, flushed to the disk, and moved there in one
    step. After an error or an interruption the old file, if any, is as it was, and
    nothing else is left behind.

    Parameters
    ----------
    path : str or path-like
        Where to write.

    Yields
    ------
    file : binary file

    Examples
    --------
    >>> import os, tempfile
    >>> from lpcfg_sk._files import written_in_one_step
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_in_one_step(os.path.join(folder, "model")) as file:
    ...         _ = file.write(b"weights")
    ...     os.listdir(folder)
    ['model']
    """
    folder, name = os.path.split(os.fspath(path))
    draft = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(draft)
        raise
