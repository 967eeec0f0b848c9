"""Accounts on disk: the same account again, one process at a time, and no release forgotten by a kill."""

import json
import os
import resource
import signal
import subprocess
import sys
from copy import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

import tplfrontier as tf
import tplrepro as tpl
from tplreport import ledger
from tplrepro.leakage.filter import LeakageExceededError

P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "work"])
SPARSE = tpl.TransitionMatrix(csr_array([[0.6, 0.0], [0.0, 0.7]]), states=[10, 3], background=[0.4, 0.3])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "account.json"


def ledger_of(path):
    with tpl.TemporalAccountant.open(path) as account:
        return account.ledger


@pytest.mark.parametrize("sides", [(P, P), (None, tpl.PriorFreeLoss(P)), (SPARSE, None), (tpl.strongest(3), None)])
@pytest.mark.parametrize("settings", [{}, {"grid": 0.01}, {"alpha": 3.0, "floor": 0.0}])
def test_an_account_that_is_opened_again_is_the_same(path, sides, settings):
    account = tpl.TemporalAccountant(*sides, **settings).compose(np.float64(0.1), 2).skip(3)
    account.save(path).compose(0.3)
    account.close()
    account.compose(0.1)  # no longer kept
    with tpl.TemporalAccountant.open(path) as again:
        assert again.ledger == account.ledger[:-1]
        np.testing.assert_array_equal(again.compose(0.1).tpl, account.tpl)
    assert ledger_of(path) == account.ledger


def test_events_and_profiles_come_back(path):
    events = pytest.importorskip("dp_accounting")
    composed = events.ComposedDpEvent([events.GaussianDpEvent(4.0), events.LaplaceDpEvent(3.0)])
    releases = [
        events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.5)), 3),
        composed,
        tf.PrivacyProfile.pure(0.1, 0.01, delta=1e-6),
    ]
    account = tpl.TemporalAccountant(P, P, grid=0.01).save(path)
    for release in releases:
        account.compose(release)
    account.close()
    with tpl.TemporalAccountant.open(path) as again:
        assert again.ledger[:2] == account.ledger[:2]
    np.testing.assert_array_equal(again.epsilon(1e-5), account.epsilon(1e-5))


def test_a_copy_is_not_kept_and_a_refused_release_leaves_no_line(path):
    account = tpl.TemporalAccountant(P, P, alpha=1.0).compose(0.2).save(path)
    before = path.read_bytes()
    copy(account).compose(0.1)
    with pytest.raises(LeakageExceededError):
        account.compose(2.0)
    assert path.read_bytes() == before
    account.close()
    with tpl.TemporalAccountant.open(path) as again:
        assert again.remaining() == account.remaining()


def test_an_error_while_writing_leaves_the_account_and_the_file_as_they_were(path, monkeypatch):
    account = tpl.TemporalAccountant(P, P, alpha=1.0).save(path).compose(0.2)
    before, rest = path.read_bytes(), account.remaining()

    def full(descriptor):  # when all is written
        assert path.read_bytes().startswith(before + b"[0.1,1,")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            account.compose(0.1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 3, limits[1]))  # a disk with room for half a line
    try:
        with pytest.raises(OSError, match="No space left"):
            account.compose(0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (path.read_bytes(), account.ledger, account.remaining()) == (before, ((0.2, 1),), rest)
    account.compose(0.05)
    account.close()
    assert ledger_of(path) == ((0.2, 1), (0.05, 1))


SERVER = """
import sys, tplrepro as tpl
path = sys.argv[1]
account = tpl.TemporalAccountant.open(path)
print("open", flush=True)
for k in range(10**6):
    account.compose(1e-4)
    print(len(account), flush=True)  # the release
"""


def test_a_server_that_is_killed_forgets_no_release(path):
    """Killed three times at any moment; another process is refused meanwhile."""
    tpl.TemporalAccountant(P, P, alpha=500.0).save(path).close()
    released = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", SERVER, path], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout.readline() == "open\n"
            with pytest.raises(ValueError, match=rf"open in one process only, found process {server.pid};"):
                tpl.TemporalAccountant.open(path)
            for _ in range(20):
                server.stdout.readline()
            os.kill(server.pid, signal.SIGKILL)
            released += 20 + len(server.stdout.readlines())
        with tpl.TemporalAccountant.open(path) as account:
            # At most the release in progress was written and not made.
            assert released <= len(account) <= released + 1
            released = len(account)


@pytest.mark.parametrize("cut", [1, 3, 8])
def test_an_incomplete_last_line_is_a_release_that_was_never_made(path, cut):
    tpl.TemporalAccountant(P, P).compose(0.2).compose(0.3).save(path).close()
    path.write_bytes(path.read_bytes()[:-cut])
    with tpl.TemporalAccountant.open(path) as account:
        assert account.ledger == ((0.2, 1),)
        account.compose(0.4)
    assert ledger_of(path) == ((0.2, 1), (0.4, 1))


def damaged(path, change):
    """The file with a change, as one of version 1, whose entries have no digests, if `change` leaves it so."""
    header, *entries = [json.loads(line) for line in path.read_text().splitlines()]
    header["version"] = 1
    lines = ["", *(json.dumps(entry[:-1]) for entry in entries)]
    change(header, lines)
    path.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")


def test_a_file_of_version_1_is_read_and_stays_one(path):
    tpl.TemporalAccountant(P, P).compose(0.2).compose(0.3).save(path).close()
    damaged(path, lambda header, lines: None)
    with tpl.TemporalAccountant.open(path) as account:
        account.compose(0.4)
    assert ledger_of(path) == ((0.2, 1), (0.3, 1), (0.4, 1))
    assert path.read_text().endswith("\n[0.4,1]\n")


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: lines.__setitem__(2, lines[2].replace("0.3", "0.2")), 3),
        (lambda lines: lines.__setitem__(2, lines[2].replace(",1,", ",2,")), 3),
        (lambda lines: lines.__setitem__(2, "[0.3,1]"), 3),
        (lambda lines: lines.__setitem__(2, "3"), 3),
        (lambda lines: lines.__setitem__(2, lines[2].replace("]", ',"more"]')), 3),
        (lambda lines: lines.pop(2), 3),
        (lambda lines: lines.insert(2, lines[2]), 4),
        (lambda lines: lines.append(lines.pop(1)), 2),
    ],
)
def test_a_changed_missing_or_moved_line_is_an_error_that_names_it(path, change, number):
    account = tpl.TemporalAccountant(P, P).compose(0.2).save(path)
    account.compose(0.3).compose(0.4).close()
    with tpl.TemporalAccountant.open(path) as account:
        account.compose(0.3)
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n")
    message = rf"line {number} of {path} must be \[release, count, digest\] as it was written, found .* restore a copy"
    with pytest.raises(ValueError, match=message):
        tpl.TemporalAccountant.open(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, lines: lines.__setitem__(1, "[0.2"), "line 2 of .* must be JSON"),
        (lambda header, lines: header.update(version=3), "must be an account of version 1 or 2, found 3"),
        (lambda header, lines: header.update(version=2), "line 2 of .*its digest is not"),
        (lambda header, lines: header["sides"]["backward"]["rows"].reverse(), "must have its digest"),
        (lambda header, lines: header.update(sides={}), "must have its digest"),
        (lambda header, lines: lines.__setitem__(1, "[-0.2,1]"), "epsilon must be a finite privacy budget"),
        (lambda header, lines: lines.__setitem__(1, '[{"class":"exit"},1]'), "must be an event of dp_accounting"),
        (lambda header, lines: lines.__setitem__(1, "[null,1]"), "epsilon must be .* found nan"),
        (lambda header, lines: lines.__setitem__(1, "[0.5]"), r"line 2 of .* must be \[release, count"),
        (lambda header, lines: lines.__setitem__(1, '[{"class":"GaussianDpEvent"},1]'), "line 2 of .* argument"),
    ],
)
def test_a_damaged_file_is_refused(path, change, message):
    tpl.TemporalAccountant(P, P).compose(0.2).compose(0.3).save(path).close()
    damaged(path, change)
    with pytest.raises(ValueError, match=message):
        tpl.TemporalAccountant.open(path)


def test_a_file_that_is_there_is_not_overwritten_and_labels_need_json(path):
    tpl.TemporalAccountant(P, P).save(path).close()
    with pytest.raises(ValueError, match="path must be new, found a file"):
        tpl.TemporalAccountant().save(path)
    with pytest.raises(ValueError, match="path must name an account's file, found none"):
        tpl.TemporalAccountant.open(path.with_name("none.json"))
    strange = tpl.TransitionMatrix(P.probabilities, states=[(0, 1), (1, 0)])
    with pytest.raises(ValueError, match=r"labels of states must be text or numbers to be saved, found \(0, 1\)"):
        tpl.TemporalAccountant(strange).save(path.with_name("other.json"))


def test_neither_another_name_nor_a_fork_makes_a_second_account(path):
    account = tpl.TemporalAccountant(P, P, alpha=1.0).save(path)
    other = path.with_name("link.json")
    other.symlink_to(path)
    with pytest.raises(ValueError, match="must be open in one process only"):
        tpl.TemporalAccountant.open(other)
    child = os.fork()
    if not child:
        try:
            account.compose(0.6)
        except ValueError as error:
            os._exit("a fork of it; open the file after the fork" in str(error))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    account.compose(0.5).close()
    assert ledger_of(path) == ((0.5, 1),)
