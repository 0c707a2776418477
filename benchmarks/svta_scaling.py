"""Cost of Gram matrices and of the SVTA, by number of states and form of T.

Random sparse grammars with 12 rules a state, dense and CP automata. The explicit
matrix E of Algorithm 2 would have n⁴ entries; its size stands beside the peak of
memory that was used.

    python benchmarks/svta_scaling.py
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd

from lpcfg_sk import WTA


def sparse(rng, n, rules_per_state=12):
    """A probabilistic grammar in which every state also emits words."""
    n_rules = rules_per_state * n
    i = np.repeat(np.arange(n), rules_per_state)
    j, k = rng.integers(0, n, size=(2, n_rules))
    weight = rng.random((n, rules_per_state)) ** 4
    weight *= 0.45 / weight.sum(axis=1, keepdims=True)
    omega = rng.random((50, n)) ** 8
    omega *= 0.55 / omega.sum(axis=0)
    words = {f"w{x}": row for x, row in enumerate(omega)}
    return WTA(np.full(n, 1 / n), (i, j, k, weight.ravel()), words)


def dense(rng, n):
    return sparse(rng, n).conjugate(np.linalg.qr(rng.standard_normal((n, n)))[0])


def cp(rng, n, rank=16):
    a, b, c = rng.random((3, n, rank))
    b, c = b / b.sum(axis=0), c / c.sum(axis=0)
    a *= 0.45 / a.sum(axis=1, keepdims=True)
    omega = rng.random((50, n)) ** 8
    omega *= 0.55 / omega.sum(axis=0)
    words = {f"w{x}": row for x, row in enumerate(omega)}
    return WTA(np.full(n, 1 / n), (a, b, c), words)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(kind, make, n):
    wta = make(np.random.default_rng(0), n)
    begin = time.process_time()
    wta.gram_matrices()
    gram = time.process_time() - begin
    values = wta.singular_values()
    svta = wta.minimize() if kind == "sparse" else wta.truncate(min(n, 32))
    total = time.process_time() - begin
    return {
        "form": kind,
        "n": n,
        "weights": wta.n_parameters,
        "rank": len(values),
        "gram_s": gram,
        "gram_and_svta_s": total,
        "svta_states": svta.n_states,
        "peak_MB": peak_mb(),
        "explicit_E_MB": 8 * n**4 / 2**20,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sparse", type=int, nargs="*", default=[50, 100, 211, 400])
    parser.add_argument("--dense", type=int, nargs="*", default=[25, 50, 100])
    parser.add_argument("--cp", type=int, nargs="*", default=[100, 211, 400])
    args = parser.parse_args()
    sparse(np.random.default_rng(0), 10).minimize()  # compiles the kernels
    jobs = [("dense", dense, n) for n in args.dense]
    jobs += [("cp", cp, n) for n in args.cp]
    jobs += [("sparse", sparse, n) for n in args.sparse]
    rows = []
    for job in jobs:
        rows.append(measure(*job))
        print(pd.Series(rows[-1]).to_frame().T.to_string(header=False), flush=True)
    print(pd.DataFrame(rows).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
