"""Small matrix products in registers.

Batches of tree nodes multiply a rule's tensor, a matrix with few rows and m² columns.
BLAS copies its arguments before such products; loops over blocks of rows that the
compiler vectorises are two to four times as fast up to m = 32.
"""

from numba import njit

from lpcfg_sk._kernels._math import REASSOC


@njit(nogil=True, cache=True, fastmath=REASSOC)
def multiply_rows(x, y, n_x, n_y, length, out):
    """Compute ``out[b, h] = Σ_p x[b, p] y[h, p]``.

    `x` and `y` are flat, with `n_x` and `n_y` rows of the given length.
    """
    b = 0
    while b + 4 <= n_x:
        x0 = x[b * length : (b + 1) * length]
        x1 = x[(b + 1) * length : (b + 2) * length]
        x2 = x[(b + 2) * length : (b + 3) * length]
        x3 = x[(b + 3) * length : (b + 4) * length]
        for h in range(0, n_y, 2):
            g = min(h + 1, n_y - 1)
            y0 = y[h * length : (h + 1) * length]
            y1 = y[g * length : (g + 1) * length]
            s00 = s10 = s20 = s30 = s01 = s11 = s21 = s31 = 0.0
            for p in range(length):
                s00 += x0[p] * y0[p]
                s10 += x1[p] * y0[p]
                s20 += x2[p] * y0[p]
                s30 += x3[p] * y0[p]
                s01 += x0[p] * y1[p]
                s11 += x1[p] * y1[p]
                s21 += x2[p] * y1[p]
                s31 += x3[p] * y1[p]
            out[b, h], out[b, g] = s00, s01
            out[b + 1, h], out[b + 1, g] = s10, s11
            out[b + 2, h], out[b + 2, g] = s20, s21
            out[b + 3, h], out[b + 3, g] = s30, s31
        b += 4
    while b < n_x:
        x0 = x[b * length : (b + 1) * length]
        h = 0
        while h + 4 <= n_y:
            y0 = y[h * length : (h + 1) * length]
            y1 = y[(h + 1) * length : (h + 2) * length]
            y2 = y[(h + 2) * length : (h + 3) * length]
            y3 = y[(h + 3) * length : (h + 4) * length]
            s00 = s01 = s02 = s03 = 0.0
            for p in range(length):
                s00 += x0[p] * y0[p]
                s01 += x0[p] * y1[p]
                s02 += x0[p] * y2[p]
                s03 += x0[p] * y3[p]
            out[b, h], out[b, h + 1], out[b, h + 2], out[b, h + 3] = s00, s01, s02, s03
            h += 4
        while h < n_y:
            y0 = y[h * length : (h + 1) * length]
            s00 = 0.0
            for p in range(length):
                s00 += x0[p] * y0[p]
            out[b, h] = s00
            h += 1
        b += 1


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_to_three(weights, x, o, n_x, length, out):
    """Add the products of rows o, o + 1 and o + 2 of `out`."""
    z0 = out[o * length : (o + 1) * length]
    z1 = out[(o + 1) * length : (o + 2) * length]
    z2 = out[(o + 2) * length : (o + 3) * length]
    s = 0
    while s + 4 <= n_x:
        x0 = x[s * length : (s + 1) * length]
        x1 = x[(s + 1) * length : (s + 2) * length]
        x2 = x[(s + 2) * length : (s + 3) * length]
        x3 = x[(s + 3) * length : (s + 4) * length]
        u0, u1, u2 = weights[o, s], weights[o + 1, s], weights[o + 2, s]
        v0, v1, v2 = weights[o, s + 1], weights[o + 1, s + 1], weights[o + 2, s + 1]
        w0, w1, w2 = weights[o, s + 2], weights[o + 1, s + 2], weights[o + 2, s + 2]
        y0, y1, y2 = weights[o, s + 3], weights[o + 1, s + 3], weights[o + 2, s + 3]
        for p in range(length):
            a, b, c = z0[p], z1[p], z2[p]
            a += u0 * x0[p]
            b += u1 * x0[p]
            c += u2 * x0[p]
            a += v0 * x1[p]
            b += v1 * x1[p]
            c += v2 * x1[p]
            a += w0 * x2[p]
            b += w1 * x2[p]
            c += w2 * x2[p]
            a += y0 * x3[p]
            b += y1 * x3[p]
            c += y2 * x3[p]
            z0[p], z1[p], z2[p] = a, b, c
        s += 4
    while s < n_x:
        x0 = x[s * length : (s + 1) * length]
        u0, u1, u2 = weights[o, s], weights[o + 1, s], weights[o + 2, s]
        for p in range(length):
            z0[p] += u0 * x0[p]
            z1[p] += u1 * x0[p]
            z2[p] += u2 * x0[p]
        s += 1


@njit(nogil=True, cache=True, fastmath=REASSOC)
def _add_to_one(weights, x, o, n_x, length, out):
    """Add the products of row o of `out`."""
    z0 = out[o * length : (o + 1) * length]
    s = 0
    while s + 4 <= n_x:
        x0 = x[s * length : (s + 1) * length]
        x1 = x[(s + 1) * length : (s + 2) * length]
        x2 = x[(s + 2) * length : (s + 3) * length]
        x3 = x[(s + 3) * length : (s + 4) * length]
        u0, v0, w0, y0 = (
            weights[o, s],
            weights[o, s + 1],
            weights[o, s + 2],
            weights[o, s + 3],
        )
        for p in range(length):
            z0[p] += u0 * x0[p] + v0 * x1[p] + w0 * x2[p] + y0 * x3[p]
        s += 4
    while s < n_x:
        x0 = x[s * length : (s + 1) * length]
        u0 = weights[o, s]
        for p in range(length):
            z0[p] += u0 * x0[p]
        s += 1


@njit(nogil=True, cache=True)
def add_product(weights, x, n_out, n_x, length, out):
    """Add ``out[o, p] += Σ_s weights[o, s] x[s, p]``.

    `x` and `out` are flat, with `n_x` and `n_out` rows of the given length. Three
    rows at a time: twelve weights and the sums just fit the registers.
    """
    o = 0
    while o + 3 <= n_out:
        _add_to_three(weights, x, o, n_x, length, out)
        o += 3
    while o < n_out:
        _add_to_one(weights, x, o, n_x, length, out)
        o += 1
