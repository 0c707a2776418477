"""The three tolerances of the test suite."""

EXACT = 1e-12  # the same formula, other order of operations
SUM = 1e-9  # long sums, products of many factors, changes of basis
ITERATIVE = 1e-6  # iterative solvers
