"""Settings that the kernels share."""

#: Lets the compiler reorder sums (SIMD) while infinities and nans keep their
#: meaning; for inner-product loops only.
REASSOC = {"reassoc", "contract", "nsz", "arcp", "afn"}
