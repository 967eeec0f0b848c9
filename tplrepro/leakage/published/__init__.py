"""Algorithms 1 to 6 and Theorem 11 of [1] as printed, with the errata corrected, in vectorised NumPy.

They compute the loss function of Eq. (24): with u = e^alpha - 1, L(alpha) is the largest log f over rows q, d and sets
S of columns, where f = (q u + 1) / (d u + 1) and q, d stand for the rows' sums over S. This is the baseline of the
runtime figures and a second opinion in the tests; `tplrepro.PrivacyLossFunction` gives the same function faster.

What differs from the printed text (docs/errata.md names the test that shows each):

- f is evaluated as 1 + x with the excess x = (q - d) u / (d u + 1), scaled by e^-alpha, and log f as log1p(x): nothing
  overflows above alpha = 709 and no digits are lost where alpha is small.
- Algorithm 1, line 5: the flag is cleared in every pass; cleared only once, the loop runs for ever after a removal.
- Algorithm 1, line 10: q_j / d_j <= f becomes (q_j - d_j) / d_j <= x, and an update that would lower x is not taken. As
  printed, f rounds to q / d from alpha of about 36 on (earlier where two rows nearly agree), the last column is removed
  too, and the answer is 0: leakage is silently understated.
- Algorithm 2, line 11: log((q_i - d_i) / (qArr_i d_i - dArr_i q_i) + 1); the "+ 1" is missing in print.
- Algorithm 3, line 5: the denominator is dArr_k (e^alpha - 1) + 1.
- Algorithm 4, lines 2 and 3, mean Algorithm 3. Its tests for equal floats, with which the recursion often never ends,
  become a tolerance relative to x (an absolute one falls below one ulp of L as L grows).
- Algorithms 3 to 5 answer for identical rows (L = 0), for which the search in print finds nothing.
- Algorithm 5, line 2, means the first right end at or above alpha, a_k >= alpha > a_(k-1). Outside [a_1, a_m], where
  the printed one has no value, ValueError is raised.
- Theorem 11, second case, needs epsilon strictly below log(1/q). Eq. (39) has wrong signs; the equation solved is
  d F^2 + (1 - d - q e^epsilon) F - e^epsilon (1 - q) = 0, for F - 1, in conjugate form where the root cancels.
- Algorithm 6 starts from sup = epsilon, not 0: with identical rows the leakage is epsilon itself.

Accuracy against 60-digit arithmetic: Algorithm 1 within a few ulp for every finite alpha. Algorithms 3 and 5 read
rounded sums from tables, which costs about 1e-16 divided by the largest total variation distance between two rows.
"""

from tplrepro.leakage.published.piecewise import PiecewiseFunction, algorithm_4, algorithm_5
from tplrepro.leakage.published.quantification import (
    PrecomputedTables,
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_6,
    piecewise_coefficients,
    theorem_11,
)

__all__ = ["PiecewiseFunction", "PrecomputedTables", "piecewise_coefficients", "theorem_11"]
__all__ += ["algorithm_1", "algorithm_2", "algorithm_3", "algorithm_4", "algorithm_5", "algorithm_6"]
