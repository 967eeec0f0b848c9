"""Mutated files for the fuzz runs of readers: the same ones every time, each read within a limit of
time and memory.

A reader may refuse a file by an error that names it, or warn. What it reads in silence is for the
test to compare with a strict parser of its own.
"""

import random
import signal
import warnings
from pathlib import Path

#: Seconds of processor time that a reader may take, however busy the machine is, and what it may
#: hold.
SECONDS, MEBIBYTES = 120, 1024


class TooSlowError(BaseException):
    """Not an Exception, so that no reader takes it for a defect of the file."""


def mutations(
    original,
    count,
    seed,
    pieces=(b"", b"\0", b"\xff", b"\n", b"\r", b"-", b"9" * 30, b'"', b",", b"\t"),
):
    """`count` mutations of a file: bits flipped, parts left out, cut, doubled, moved, replaced by
    noise or pieces."""
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(original)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            at, other, kind = (
                rng.randrange(len(data) + 1),
                rng.randrange(len(data) + 1),
                rng.randrange(6),
            )
            until = at + rng.choice((0, 1, 4, 20, 200))
            if kind == 0:
                data[at : at + 1] = bytes(
                    byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1]
                )
            elif kind == 1:
                data[at:until] = rng.choice(pieces)
            elif kind == 2:
                data[at:until] = rng.randbytes(until - at)
            elif kind == 3:
                data[at:at] = data[at:until]
            elif kind == 4:
                data[other:other] = data[at:until]
            elif rng.random() < 0.3:
                del data[at:]
        yield bytes(data)


def read_within_limits(read, path, data):
    """What `read` makes of a file of these bytes, and whether it warned; None where it refuses the
    file by its name."""

    def too_slow(*_):
        raise TooSlowError(f"{path.name} took more than {SECONDS} s of the processor to read")

    path.write_bytes(data)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory counts from here
    before = peak()
    signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            return read(path), bool(warned)
    except (OSError, ValueError) as refusal:  # DataFormatError is a ValueError
        if path.name not in str(refusal):
            raise AssertionError(f"the error does not name {path.name}: {refusal!r}") from refusal
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        assert peak() - before < MEBIBYTES << 10, (
            f"{path.name} took {(peak() - before) >> 10} MiB to read"
        )


def peak():
    """The most memory that this process has held since its peak was set back, in KiB.

    `ru_maxrss` may be that of the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])
