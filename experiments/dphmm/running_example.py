"""The running example of [5]: six states, a query into the plane, three categories (Figs. 3 to 9,
14 and 15).

State s_1 of the paper is index 0. The paper gives the transition probabilities of Fig. 4 as a
drawing only.
"""

import numpy as np

from tplrepro.validation import frozen

#: f, (6, 2): temperature and noise level of each state (Example 3.2).
ANSWERS = frozen(np.array([[1, 2, 3, 0, 4, 1], [0, 1, 0, 1, 2, 2]], dtype=float).T)
#: Cafeteria, school and grocery (Fig. 3).
CATEGORIES = ((0,), (1, 2), (3, 4, 5))
#: A random walk, (6, 6); our own, which allows every sequence that the paper's text calls possible.
TRANSITIONS = frozen(
    [
        [0, 1 / 2, 0, 1 / 2, 0, 0],
        [0, 1 / 3, 1 / 3, 0, 1 / 3, 0],
        [1 / 2, 1 / 2, 0, 0, 0, 0],
        [1 / 3, 0, 0, 0, 1 / 3, 1 / 3],
        [0, 0, 1 / 2, 0, 0, 1 / 2],
        [0, 0, 0, 1 / 2, 1 / 2, 0],
    ]
)
#: Example 5.3: how much each patient's record adds to the counts of cancer and of diabetes, (6, 2).
COUNTS = frozen([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
#: Example 5.3: the policy graph of Fig. 2b.
PATIENT_EDGES = ((0, 1), (2, 3))
#: Example 11.2: s_4-s_6 and s_5-s_6, the graph that its printed hulls belong to.
ATTACKED_EDGES = ((3, 5), (4, 5))
