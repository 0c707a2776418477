"""Fixtures: corpora where they are installed, seeds, a numba cache of its own."""

import hashlib
import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _kernel_hash():
    digest = hashlib.sha256()
    for path in sorted((ROOT / "lpcfg_sk" / "_kernels").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# numba does not notice that a kernel of another module, inlined into a cached one,
# was edited: the cache of the tests is therefore keyed by all kernel sources.
os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(Path(tempfile.gettempdir()) / f"lpcfg_sk-numba-{_kernel_hash()}"),
)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402

DATA = Path(os.environ.get("LPCFG_SK_DATA", ROOT.parent / "shared" / "data"))


def pytest_report_header():
    """Say at the start how long it takes."""
    text = "lpcfg_sk: all tests take about five minutes on two cores"
    if not Path(os.environ["NUMBA_CACHE_DIR"]).exists():
        text += ", with compiling, which the next run need not do"
    return text


def _corpus(*parts):
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"corpus {'/'.join(parts)} not found under LPCFG_SK_DATA={DATA}")
    return path


def _trees(*parts):
    from lpcfg_sk import read_treebank

    return read_treebank(_corpus(*parts))


def _lines(*parts):
    with open(_corpus(*parts), encoding="utf-8") as lines:
        return [line.split() for line in lines]


@pytest.fixture(params=[0])
def seed(request):
    """Seed of random test data; ``LPCFG_SK_SEED`` moves it."""
    return request.param + int(os.environ.get("LPCFG_SK_SEED", "0"))


@pytest.fixture(scope="session")
def wsj_train():
    return _trees("wsj", "train")


@pytest.fixture(scope="session")
def wsj_dev():
    return _trees("wsj", "dev")


@pytest.fixture(scope="session")
def gum_train():
    return _trees("gum", "train.ptb")


@pytest.fixture(scope="session")
def gum_dev():
    return _trees("gum", "dev.ptb")


@pytest.fixture(scope="session")
def brown_train():
    return _lines("brown", "train.txt")


@pytest.fixture(scope="session")
def brown_dev():
    return _lines("brown", "dev.txt")


@pytest.fixture(scope="session")
def evalb_dir():
    return _corpus("evalb")
