import pytest


@pytest.fixture
def recorded():
    """A function that gives the path of a recorded log, or skips with the reason."""

    def find(name):
        from tplrepro.eventlog import recorded_logs

        found = recorded_logs()
        if name not in found:
            pytest.skip(f"TPLREPRO_DATA has no eventlogs/{name}.xes or .xes.gz")
        return found[name]

    return find
