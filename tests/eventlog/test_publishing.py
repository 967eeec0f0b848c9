import numpy as np
import pandas as pd
import pytest

from experiments.datasets.event_logs import synthetic_log
from tests.eventlog.logs import log_of, published_log
from tplrepro.eventlog import TransitionSystem, release_step, releases

LOG = log_of("abcd", "ab", "abc")


def published(*args, **options):
    return [release.published.tolist() for release in releases(LOG, *args, **options)]


def test_certain_releases_by_hand():
    # 9 events in time order: three a, three b, two c, one d; the end counts as an event.
    assert published(start=0.3) == [[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 3, 4], [5, 3, 4]]
    assert published(2, start=0.3) == [[1, 1, 1], [3, 3, 3], [5, 3, 4]]
    assert published(start=0.5) == [[2, 3, 2], [3, 3, 3], [4, 3, 4], [5, 3, 4]]  # the second b ends a case with it
    assert published(8, start=1.0) == [[5, 3, 4]]
    assert published(start="2022-01-01 01:30") == published(start=0.5)
    assert published(start=pd.Timestamp("2022-01-01 02:30", tz="Europe/Berlin")) == published(start=0.5)
    assert published(max_releases=2) == published()[:2]
    assert published(start=1e-9)[0] == published(start=0.1)[0] == [1, 1, 1]  # the first hour, not the whole log


def test_nanoseconds_order_events_and_limit_the_first_release():
    times = pd.to_datetime([1_000_002, 1_000_001], unit="ns")
    log = log_of("ab").assign(**{"time:timestamp": times})
    assert [release.traces.events for release in releases(log, start=1.0)] == [[(2, 1)]]
    assert next(releases(log, start=times[1])).published.tolist() == [1]


def test_later_cases_join_with_the_second_release():
    late = log_of("ab", "ab").assign(shift=pd.to_timedelta([0, 0, 9, 9], unit="h"))
    late["time:timestamp"] += late.pop("shift")
    found = [release.published.tolist() for release in releases(late, start=0.5)]
    assert found == [[3, 0], [3, 1], [3, 2], [3, 3]]


def test_uncertain_releases_are_seeded_and_within_the_window():
    log = synthetic_log(200, seed=1)
    series = [release.published for release in releases(log, 3, certain=False, rng=np.random.default_rng(5))]
    again = [release.published for release in releases(log, 3, certain=False, rng=np.random.default_rng(5))]
    assert all(np.array_equal(a, b) for a, b in zip(series, again, strict=True))
    new = np.diff(series[:3], axis=0)
    assert new.min() == 0
    assert new.max() == 3
    open_cases = new[0][series[0] + 3 < series[-1]]
    assert np.bincount(open_cases, minlength=4) / open_cases.size == pytest.approx([0.25] * 4, abs=0.15)


@pytest.mark.parametrize(("certain", "state_window"), [(True, None), (False, 2)])
def test_the_log_of_a_release_gives_its_transition_system(certain, state_window):
    log = synthetic_log(30, seed=2).sample(frac=1, random_state=0)  # whatever the order of the rows
    for release in releases(log, 2, certain=certain, start=0.3, rng=np.random.default_rng(0)):
        by_log = TransitionSystem.from_log(published_log(log, release.published), state_window)
        by_paths = TransitionSystem.from_paths(release.paths, release.traces.activities, state_window)
        assert set(by_log.states) == set(by_paths.states)
        assert by_log.counts.sum() == by_paths.counts.sum()
        assert by_log.final.sum() == by_paths.final.sum()


def test_incomplete_cases_of_the_log_never_end():
    *_, last = releases(log_of("ab", "abc", complete=[True, False]))
    assert last.published.tolist() == [3, 3]
    system = TransitionSystem.from_paths(last.paths, last.traces.activities)
    step = release_step(system)
    for owner, name in ((system, "counts"), (step, "backward"), (step, "forward")):
        stored = getattr(owner, name)
        assert not stored.data.flags.writeable
        stored.data = 2 * stored.data
        assert (getattr(owner, name).data == stored.data / 2).all()
    for array in (last.published, last.traces.times, system.visits, system.final, system.has_successor):
        assert not array.flags.writeable
    assert last.paths == {(0, 1, 2, 4): 1, (0, 1, 2, 3): 1}
