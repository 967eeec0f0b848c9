import numpy as np
import pandas as pd

from tests.tplrepro.eventlog.logs import log_of, random_log
from tplrepro.eventlog import TransitionSystem, release_step, releases

LOG = log_of("abcd", "ab", "abc")


def published(*args, log=LOG, **options):
    return [release.published.tolist() for release in releases(log, *args, **options)]


def test_certain_releases_publish_what_is_counted_by_hand():
    # 9 events in time order: three a, three b, two c, one d; the end counts as an event.
    assert published(start=0.3) == [[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 3, 4], [5, 3, 4]]
    assert published(2, start=0.3) == [[1, 1, 1], [3, 3, 3], [5, 3, 4]]
    # the second b ends a case with it
    assert published(start=0.5) == [[2, 3, 2], [3, 3, 3], [4, 3, 4], [5, 3, 4]]
    assert published(8, start=1.0) == [[5, 3, 4]]
    assert published(start="2022-01-01 01:30") == published(start=0.5)
    assert published(start=pd.Timestamp("2022-01-01 02:30", tz="Europe/Berlin")) == published(
        start=0.5
    )
    assert published(max_releases=2) == published()[:2]
    # the first hour, not the whole log
    assert published(start=1e-9)[0] == published(start=0.1)[0] == [1, 1, 1]


def test_nanoseconds_order_events_and_later_cases_join_with_the_second_release():
    times = pd.to_datetime([1_000_002, 1_000_001], unit="ns")
    log = log_of("ab").assign(**{"time:timestamp": times})
    assert [release.traces.events for release in releases(log, start=1.0)] == [[(2, 1)]]
    assert published(log=log, start=times[1])[0] == [1]
    late = log_of("ab", "ab")
    late["time:timestamp"] += pd.to_timedelta([0, 0, 9, 9], unit="h")
    assert published(log=late) == [[3, 0], [3, 1], [3, 2], [3, 3]]


def test_incomplete_cases_of_the_log_never_end_and_results_are_read_only():
    *_, last = releases(log_of("ab", "abc", complete=[True, False]))
    assert last.published.tolist() == [3, 3]
    assert last.traces.paths(last.published) == {(0, 1, 2, 4): 1, (0, 1, 2, 3): 1}
    system = TransitionSystem.from_log(last)
    step = release_step(system)
    for owner, name in ((system, "counts"), (step, "backward"), (step, "forward")):
        stored = getattr(owner, name)
        assert not stored.data.flags.writeable
        stored.data = 2 * stored.data
        assert (getattr(owner, name).data == stored.data / 2).all()
    for array in (
        last.published,
        last.traces.times,
        system.visits,
        system.final,
        system.has_successor,
    ):
        assert not array.flags.writeable


def test_the_first_release_holds_its_share_of_events_in_whatever_order_they_are():
    rng = np.random.default_rng(5)
    log = random_log(rng, cases=400)
    minutes = pd.to_timedelta(rng.permutation(len(log)), unit="min")
    log["time:timestamp"] = pd.Timestamp("2022-01-01") + minutes
    for n_events in (1, 2, 500, len(log)):
        (first,) = releases(log, start=n_events / len(log), max_releases=1)
        without_ends = np.minimum(first.published, first.traces.lengths)
        assert without_ends.sum() == n_events
