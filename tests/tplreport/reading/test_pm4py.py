"""Both readers agree; skipped where pm4py, the optional extra, is not installed."""

import pandas as pd
import pytest

from experiments.datasets.event_logs import synthetic_log
from tests.tplrepro.eventlog.logs import COLUMNS, recorded
from tplreport import read_xes
from tplrepro.eventlog import TransitionSystem

pm4py = pytest.importorskip("pm4py", reason="pm4py is not installed; pip install tplrepro[pm4py]")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pm4py and what it imports


def by_pm4py(path):
    log = pm4py.read_xes(str(path))[COLUMNS].reset_index(drop=True)
    log["time:timestamp"] = pd.to_datetime(log["time:timestamp"], utc=True).astype(
        "datetime64[us, UTC]"
    )
    return log.astype({name: str for name in COLUMNS[:2]})


def assert_agree(path):
    key = ["case:concept:name", "time:timestamp"]
    logs = (read_xes(path), by_pm4py(path))
    ours, theirs = (log.sort_values(key, kind="stable").reset_index(drop=True) for log in logs)
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)
    assert len(ours) > 0


def test_stand_ins_and_logs_that_pm4py_writes_are_read_as_by_pm4py(tmp_path):
    log = synthetic_log(100, seed=1, path=tmp_path / "log.xes.gz")
    assert_agree(tmp_path / "log.xes.gz")
    theirs = by_pm4py(tmp_path / "log.xes.gz")
    assert set(TransitionSystem.from_log(theirs).states) == set(
        TransitionSystem.from_log(log).states
    )
    pm4py.write_xes(log, str(tmp_path / "theirs.xes"))
    assert_agree(tmp_path / "theirs.xes")


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["running-example", "roadtraffic100traces", "Sepsis", "receipt"])
def test_recorded_logs_are_read_as_by_pm4py(name):
    assert_agree(recorded(name))
