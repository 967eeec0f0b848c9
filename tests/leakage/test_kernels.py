"""Compiled code: its sums, its sorting, and that a change to the file of the kernels compiles them anew."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.leakage.envelope import dense, kernels, sparse


@given(st.lists(st.floats(1e-20, 1.0), min_size=1, max_size=200))
def test_compensated_sums_are_right_to_the_last_bits(terms):
    total = lost = 0.0
    for term in terms:
        total, lost = kernels.add(total, lost, term)
    assert total == pytest.approx(math.fsum(terms), rel=4.5e-16, abs=0)


@given(st.lists(st.integers(0, 30), max_size=120))
def test_order_is_stable(keys):
    keys = np.array(keys, dtype=float)
    np.testing.assert_array_equal(kernels.stable_order(keys), np.argsort(keys, kind="stable"))


def test_no_kernel_is_compiled_twice_but_for_tiles_of_both_precisions():
    rng = np.random.default_rng(0)
    for n in (2, 60):
        P = tpl.random_matrix(n, seed=1)
        for matrix in (P.probabilities, np.asfortranarray(P.probabilities), tpl.smoothed(P, 1e8).probabilities):
            dense.joint_hull(np.ascontiguousarray(matrix))
            dense.best_pair(np.ascontiguousarray(matrix), 1.0)
    sequence = rng.integers(0, 300, 3000)
    P = tpl.TransitionMatrix.from_sequences([sequence], n_states=300, smoothing=0.01, sparse=True)
    sparse.joint_hull(P.probabilities, P.background)
    sparse.best_pair(P.probabilities, P.background, 1.0)
    compiled = {name: f.signatures for name, f in vars(kernels).items() if hasattr(f, "signatures")}
    assert len(compiled) > 30
    for name, signatures in compiled.items():
        assert len(signatures) <= (2 if "float32" in str(signatures) else 1), (name, signatures)


def test_a_change_to_the_kernels_compiles_them_anew(tmp_path):
    # `add` is called from kernels that do not change themselves; they are compiled anew as it lies in the same file.
    package = tmp_path / "changed"
    package.mkdir()
    source = Path(kernels.__file__).read_text(encoding="utf-8")
    (package / "__init__.py").touch()
    target = package / "kernels.py"
    code = "import numpy as np; from changed import kernels; print(kernels.point_at(np.eye(2), 0, 1, 2, 0.0)[1])"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def run():
        command = [sys.executable, "-B", "-c", code]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    target.write_text(source, encoding="utf-8")
    assert run() == 1.0
    before = target.stat().st_mtime_ns
    assert run() == 1.0
    assert target.stat().st_mtime_ns == before  # imports leave the files alone
    assert "new = total + term\n" in source
    target.write_text(source.replace("new = total + term\n", "new = total + 2.0 * term\n"), encoding="utf-8")
    assert run() == 2.0
