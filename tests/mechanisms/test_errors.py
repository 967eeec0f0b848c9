"""The errors of all mechanisms name the argument that cannot be, what it must be and what was found."""

import numpy as np
import pytest

import tplrepro as tpl
from tplrepro.mechanisms import KaryRandomizedResponse, UnaryEncoding

COUNTS = {"series": [3, 4, 5], "epsilons": 1.0, "sensitivity": 1}
REPORTS = {"epsilon": 1.0, "n": 3}


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (tpl.release_counts, COUNTS | {"epsilons": [1.0]}, "one for each release, found 1 for 3 releases; give 3"),
        (tpl.release_counts, COUNTS | {"epsilons": [1, 0, 1]}, "epsilons must be a finite privacy budget .* found 0"),
        (
            tpl.release_counts,
            COUNTS | {"sensitivity": 0},
            "sensitivity must be finite and greater than 0, found 0; give",
        ),
        (tpl.release_counts, COUNTS | {"sensitivity": np.inf}, "sensitivity must be .* found inf"),
        (tpl.release_counts, COUNTS | {"sensitivity": 1.5}, "whole counts .*, found sensitivity 1.5; round it up"),
        (tpl.release_counts, COUNTS | {"mechanism": "gauss"}, "mechanism must be 'opendp' or 'numpy', found 'gauss'"),
        (
            tpl.release_counts,
            COUNTS | {"rng": np.random.default_rng(0)},
            "takes no generator, found rng; leave rng out",
        ),
        (tpl.release_counts, COUNTS | {"series": []}, r"not be empty, found \(0,\)"),
        (tpl.release_counts, COUNTS | {"series": np.zeros((3, 2, 2))}, r"series must have shape .* found \(3, 2, 2\)"),
        (
            tpl.release_counts,
            COUNTS | {"series": [1.0, np.nan, 2.0]},
            "counts must be finite, found nan; fill in missing",
        ),
        (
            tpl.release_counts,
            COUNTS | {"series": [[1, 2], [3], [4]]},
            "series must be a rectangular array .*found list",
        ),
        (KaryRandomizedResponse, REPORTS | {"epsilon": 0.0}, "epsilon must be a finite level"),
        (KaryRandomizedResponse, REPORTS | {"n": 0}, "n must be at least 1"),
        (UnaryEncoding, REPORTS | {"epsilon": 0.0}, "epsilon must be a finite level"),
        (UnaryEncoding, REPORTS | {"n": 0}, "n must be at least 1"),
    ],
)
def test_messages(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(**arguments)
