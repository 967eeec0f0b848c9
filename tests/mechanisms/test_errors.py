"""The errors of all mechanisms name the argument that cannot be, what it must be and what was found."""

from functools import partial

import numpy as np
import pytest

import tplrepro as tpl
from tplrepro.mechanisms import KaryRandomizedResponse, UnaryEncoding

release = partial(tpl.release_counts, series=[3, 4, 5], epsilons=1.0, sensitivity=1)
respond = partial(KaryRandomizedResponse, epsilon=1.0, n=3)
encode = partial(UnaryEncoding, epsilon=1.0, n=3)

CASES = [
    (release, {"epsilons": [1.0]}, "one for each release, found 1 for 3 releases; give 3"),
    (release, {"epsilons": [1, 0, 1]}, "epsilons must be a finite privacy budget .* found 0"),
    (release, {"sensitivity": 0}, "sensitivity must be finite and greater than 0, found 0; give the most"),
    (release, {"sensitivity": np.inf}, "sensitivity must be .* found inf"),
    (release, {"sensitivity": 1.5}, "whole counts change by whole numbers, found sensitivity 1.5; round it up"),
    (release, {"mechanism": "gauss"}, "mechanism must be 'opendp' or 'numpy', found 'gauss'"),
    (release, {"rng": np.random.default_rng(0)}, 'takes no generator, found rng; leave rng out, or pass mechanism="n'),
    (release, {"series": []}, r"not be empty, found \(0,\)"),
    (release, {"series": np.zeros((3, 2, 2))}, r"series must have shape .* found \(3, 2, 2\)"),
    (release, {"series": [1.0, np.nan, 2.0]}, "counts must be finite, found nan; fill in missing counts"),
    (release, {"series": [[1, 2], [3], [4]]}, "series must be a rectangular array of counts, found list"),
    *[(mechanism, {"epsilon": 0.0}, "epsilon must be a finite level") for mechanism in (respond, encode)],
    *[(mechanism, {"n": 0}, "n must be at least 1") for mechanism in (respond, encode)],
]


@pytest.mark.parametrize(("call", "arguments", "message"), CASES)
def test_messages(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(**arguments)
