"""A file that was put back, copied or restored with its mark is noticed, on a disk and in memory;
one that was not is published from."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

import tplreport as tr

P = [[0.8, 0.2], [0.1, 0.9]]
SETTINGS = {"backward": P, "forward": P, "alpha": 1.0, "sensitivity": 1, "floor": 0.1}
NAMES = ("counts.sqlite", "counts.sqlite.mark")
MEMORY = Path("/dev/shm")  # a file system of the kind tmpfs


@pytest.fixture(params=["disk", "memory"])
def folder(request, tmp_path):
    if request.param == "disk":
        yield tmp_path
    elif not os.access(MEMORY, os.W_OK):
        pytest.skip("needs a file system in memory at /dev/shm")
    else:
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            yield Path(name)


class InPlace:
    """Both files are written over, each in its inode."""

    def keep(self, home, store):
        for name in NAMES:
            shutil.copyfile(home / name, store / name)

    def put_back(self, store, home):
        for name in NAMES:
            shutil.copyfile(store / name, home / name)


class InPlaceWithTimes(InPlace):
    """As `cp -p` does."""

    def keep(self, home, store):
        for name in NAMES:
            shutil.copy2(home / name, store / name)

    def put_back(self, store, home):
        for name in NAMES:
            shutil.copy2(store / name, home / name)


class Renamed(InPlaceWithTimes):
    """As rsync does: a copy with the old times takes the place of each file."""

    def put_back(self, store, home):
        for name in NAMES:
            shutil.copy2(store / name, home / f"{name}.partial")
            os.replace(home / f"{name}.partial", home / name)


class FileOnly(InPlaceWithTimes):
    """The mark stays as it is."""

    def put_back(self, store, home):
        shutil.copy2(store / NAMES[0], home / NAMES[0])


class Tar:
    """An archive is unpacked over the files."""

    def keep(self, home, store):
        with tarfile.open(store / "kept.tar", "w") as archive:
            for name in NAMES:
                archive.add(home / name, name)

    def put_back(self, store, home):
        with tarfile.open(store / "kept.tar") as archive:
            archive.extractall(home, filter="data")


class Zip:
    """An archive without times and inodes is unpacked over the files."""

    def keep(self, home, store):
        with zipfile.ZipFile(store / "kept.zip", "w") as archive:
            for name in NAMES:
                archive.write(home / name, name)

    def put_back(self, store, home):
        with zipfile.ZipFile(store / "kept.zip") as archive:
            archive.extractall(home)


class Git:
    """A commit is checked out."""

    def run(self, home, *words):
        names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_CONFIG_GLOBAL": "/dev/null"}
        names |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
        subprocess.run(
            ["git", *words], cwd=home, check=True, capture_output=True, env=os.environ | names
        )

    def keep(self, home, store):
        self.run(home, "init", "-q")
        self.run(home, "add", *NAMES)
        self.run(home, "commit", "-qm", "kept")

    def put_back(self, store, home):
        self.run(home, "checkout", "-q", "HEAD", "--", *NAMES)


class Tree:
    """The whole folder is removed, and made again from a copy."""

    def keep(self, home, store):
        shutil.copytree(home, store / "tree")

    def put_back(self, store, home):
        shutil.rmtree(home)
        shutil.copytree(store / "tree", home)


class MovedTree(Tree):
    """A copy of the folder takes its name."""

    def put_back(self, store, home):
        home.rename(store / "used")
        (store / "tree").rename(home)


class Reflink(InPlace):
    """Copies that share their blocks where the file system can."""

    def keep(self, home, store):
        self.copy(home, store)

    def put_back(self, store, home):
        self.copy(store, home)

    def copy(self, source, target):
        for name in NAMES:
            words = ("cp", "-a", "--remove-destination", "--reflink=auto")
            subprocess.run([*words, source / name, target / name], check=True)


class HardLinks(Tree):
    """Another name of the file itself, while the mark is a copy."""

    def keep(self, home, store):
        os.link(home / NAMES[0], store / NAMES[0])

    def put_back(self, store, home):
        (home / NAMES[0]).unlink()
        (store / NAMES[0]).rename(home / NAMES[0])


class Resumed(InPlaceWithTimes):
    """A copy that published after `resume` takes the place of the file, in its inode."""

    def keep(self, home, store):
        for name in NAMES:
            shutil.copy2(home / name, store / name)
        copy = tr.Publisher(store / NAMES[0]).resume()
        for time in range(3, 9):
            copy.publish(time, 7)

    def put_back(self, store, home):
        shutil.copyfile(store / NAMES[0], home / NAMES[0])


WAYS = (InPlace, InPlaceWithTimes, Renamed, FileOnly, Tar, Zip, Git, Tree, MovedTree, Reflink)
WAYS += (HardLinks, Resumed)


@pytest.mark.parametrize("is_open", [True, False], ids=["while it is open", "while it is closed"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_file_that_was_put_back_is_read_and_not_published_from(folder, way, is_open):
    home, store = folder / "home", folder / "store"
    home.mkdir()
    store.mkdir()
    publisher = tr.Publisher(home / NAMES[0], **SETTINGS)
    for time in range(3):
        publisher.publish(time, 10)
    kept = way()
    kept.keep(home, store)
    if way is not HardLinks:  # which is refused before
        publisher.publish(3, 10)
        publisher.publish(4, 10)
    kept.put_back(store, home)
    if not is_open:
        publisher = tr.Publisher(home / NAMES[0])
    assert len(publisher.to_frame()) >= 3
    for action in (lambda: publisher.publish(len(publisher), 10), lambda: publisher.skip(5)):
        with pytest.raises(OSError, match=r"is a copy, was renamed, an older state was put back"):
            action()
    remaining = publisher.resume(9).remaining
    assert remaining == publisher.remaining
    publisher.publish(10, 1)


def test_both_of_two_copies_are_refused_and_the_original_goes_on(folder):
    original = folder / "original"
    original.mkdir()
    publisher = tr.Publisher(original / NAMES[0], **SETTINGS)
    publisher.publish(0, 10)
    for name in ("first", "second"):
        shutil.copytree(original, folder / name)
    for name in ("first", "second"):
        copy = tr.Publisher(folder / name / NAMES[0])
        with pytest.raises(OSError, match="is a copy"):
            copy.publish(1, 10)
    publisher.publish(1, 10)


def test_reading_copying_and_moving_the_folder_stop_no_publishing(folder):
    home = folder / "home"
    home.mkdir()
    publisher = tr.Publisher(home / NAMES[0], **SETTINGS)
    reads = (
        lambda: shutil.copytree(home, folder / "copy"),
        lambda: Tar().keep(home, folder),
        lambda: publisher.backup(folder / "backup"),
        lambda: home.rename(folder / "moved") and (folder / "moved").rename(home),
        lambda: publisher.ledger,
        lambda: (home / NAMES[0]).read_bytes(),
    )
    for time, read in enumerate(reads):
        publisher.publish(time, 10)
        read()
    publisher.publish(len(reads), 10)


def test_a_changed_change_time_stops_publishing_until_resume_and_spends_nothing(folder):
    path = folder / NAMES[0]
    publisher = tr.Publisher(path, **SETTINGS)
    alarms = (
        lambda: path.chmod(0o600),
        path.touch,
        lambda: os.link(path, folder / "other") or (folder / "other").unlink(),
        lambda: path.rename(folder / "other") and (folder / "other").rename(path),
    )
    for time, alarm in enumerate(alarms):
        publisher.publish(time, 10)
        alarm()
        with pytest.raises(OSError, match="permissions, links or times were changed.*resume.. if"):
            publisher.publish(time + 1, 10)
        remaining = publisher.remaining
        assert publisher.resume().remaining == remaining
    publisher.publish(len(alarms), 10)


class Volume:
    """A folder that stands for a disk: what is put back has all that the file system says, too."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.patch = monkeypatch

    def put_back(self, kept):
        """Put back the content of the files, and what the file system said of them."""
        from tplreport.publishing import marked_file, store

        for name in NAMES:
            shutil.copyfile(kept / name, self.folder / name)
        record = tr.Publisher(self.folder / NAMES[0])._file.mark.read()
        self.patch.setattr(store, "facts_of", lambda path, **options: record.facts)
        self.patch.setattr(marked_file, "facts_of", lambda path, **options: record.facts)


@pytest.mark.parametrize("has_witness", [True, False])
def test_a_witness_elsewhere_notices_a_disk_that_was_put_back(folder, monkeypatch, has_witness):
    """Without one nothing can: that is why the guide asks for it."""
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir()
    witness = folder / "counts.witness" if has_witness else None
    publisher = tr.Publisher(disk / NAMES[0], **SETTINGS, witness=witness)
    publisher.publish(0, 10)
    shutil.copytree(disk, kept)
    publisher.publish(1, 10)
    Volume(disk, monkeypatch).put_back(kept)
    publisher = tr.Publisher(disk / NAMES[0])
    assert len(publisher) == 1
    if has_witness:
        with pytest.raises(OSError, match="as its witness .*counts.witness knows it, found a witn"):
            publisher.publish(1, 10)
        publisher.resume(1)
        assert publisher.ledger["kind"].tolist() == ["published", "spent elsewhere"]
    else:
        publisher.publish(1, 10)


def test_a_witness_that_cannot_be_reached_stops_publishing_but_not_reading(tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    witness = share / "counts.witness"
    publisher = tr.Publisher(tmp_path / NAMES[0], **SETTINGS, witness=witness)
    publisher.publish(0, 10)
    share.rename(tmp_path / "gone")
    again = tr.Publisher(tmp_path / NAMES[0])
    assert len(again.to_frame()) == 1
    with pytest.raises(OSError, match="witness .* knows it, found none; mount it"):
        again.publish(1, 10)
    with pytest.raises(OSError, match="the folder of its witness .* is missing"):
        again.resume()
    (tmp_path / "gone").rename(share)
    again.publish(1, 10)
    assert witness.stat().st_mode & 0o777 == 0o600


def test_a_witness_is_changed_by_resume_and_the_old_one_is_forgotten(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    path = tmp_path / NAMES[0]
    publisher = tr.Publisher(path, **SETTINGS)
    publisher.publish(0, 10)
    for given in (first, second):
        opened = tr.Publisher(path, witness=given)
        with pytest.raises(
            ValueError, match=r"the witness of .* must be .*, found .*; leave it out"
        ):
            opened.skip(len(opened))
        opened.resume().publish(len(opened), 10)
    assert (first.exists(), second.exists()) == (False, True)
    tr.Publisher(path).publish(3, 10)
    with pytest.raises(ValueError, match="must spare .*counts.sqlite.mark, found the same file"):
        tr.Publisher(path, witness=tmp_path / NAMES[1])


def test_a_witness_remembers_a_file_that_was_deleted_with_its_mark(tmp_path):
    path, witness = tmp_path / NAMES[0], tmp_path / "witness"
    tr.Publisher(path, **SETTINGS, witness=witness).publish(0, 10)
    for name in NAMES:
        (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match="witness tells that it was used"):
        tr.Publisher(path, **SETTINGS, witness=witness)
