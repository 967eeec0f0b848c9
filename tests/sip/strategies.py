"""Beliefs that hypothesis draws: from even ones to values down to 1e-12."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def beliefs(draw, smallest=2, largest=8):
    n = draw(st.integers(smallest, largest))
    exponents = draw(st.lists(st.floats(-12.0, 0.0), min_size=n, max_size=n))
    values = 10.0 ** np.array(exponents)
    zeros = draw(st.lists(st.booleans(), min_size=n, max_size=n)) if draw(st.booleans()) else [False] * n
    values[np.array(zeros)] = 0.0
    if not values.any():
        values[0] = 1.0
    return values / values.sum()


budgets = st.one_of(st.floats(0.05, 5.0), st.floats(1e-6, 0.05), st.floats(5.0, 30.0))
