"""Plain readers of the official formats, line by line and strictly, to compare the package's
readers with."""

import gzip
import math
import re
import zipfile
from datetime import UTC, datetime

NUMBER = re.compile(
    rb"[ \t]*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*|[ +-]*(nan|inf|infinity) *", re.IGNORECASE
)
WHOLE = re.compile(rb" *\d{1,18} *")
STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def parsed(kind, form, field):
    """What a field says, which the format allows only this form."""
    if not form.fullmatch(field):
        raise ValueError(field)
    return kind(field)


def row(user, stamp, latitude, longitude, more, earliest="1970-01-01"):
    """User, time, position and more of a line; None for a known defect."""
    when = datetime.fromisoformat(parsed(bytes.decode, STAMP, stamp))
    sound = abs(latitude) <= 90 and abs(longitude) <= 180
    sound = sound and datetime.fromisoformat(earliest + "T00:00Z") <= when <= datetime.now(UTC)
    return (user, when.timestamp(), latitude, longitude, more) if sound else None


def point(line):
    """A line of Geolife of user 0; the altitude is in metres, None where unknown."""
    latitude, longitude, _, altitude, day, date, clock = line.split(b",")
    if b":" in day:
        raise ValueError(day)  # which the reader takes for a part of a time
    feet = parsed(float, NUMBER, altitude)
    metres = None if feet == -777 or not math.isfinite(feet) else round(feet * 0.3048, 2)
    place = [parsed(float, NUMBER, field) for field in (latitude, longitude)]
    return row(
        0, date.strip(b" \t") + b"T" + clock.strip(b" \t") + b"Z", *place, metres, "2007-01-01"
    )


def visit(line):
    fields = line.split(b"\t")
    forms = [(int, WHOLE), (bytes, STAMP), (float, NUMBER), (float, NUMBER), (int, WHOLE)]
    values = [
        parsed(*form, field) if field else None for field, form in zip(fields, forms, strict=True)
    ]
    return None if None in values or values[2:4] == [0, 0] else row(*values)


def sample(line):
    when, x, y = (parsed(float, NUMBER, field) if field else math.nan for field in line.split(b","))
    return ("A", when, x, y) if math.isfinite(when + x + y) and (x or y) else None


def session(line):
    pages = [parsed(int, WHOLE, page) for page in line.replace(b"\t", b" ").split(b" ") if page]
    if any(page >= 2**31 for page in pages):
        raise ValueError(pages)
    return pages or None


def read(data, head, parse):
    """What a file holds, each user and time once, and how many lines are left out; ValueError for a
    malformed one."""
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    *top, rest = (data + b"\n" * bool(head)).split(b"\n", head)
    if len(top) < head or (parse is point and not top[5].strip().isdigit()):
        raise ValueError("the header is cut")
    found = []
    for line in rest.splitlines():
        line.decode()
        found += [parse(line)] if line or parse is session else []
    kept = [one for one in found if one is not None]
    if parse is not session:
        kept = sorted({one[:2]: one for one in reversed(kept)}.values(), key=lambda one: one[:2])
    return kept, len(found) - len(kept)


def trajectories(path):
    """What a zip of Geolife holds."""
    rows = {}
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            for _, *values in read(archive.read(name), 6, point)[0]:
                rows.setdefault((int(name.split("/")[-3]), values[0]), values[1:])
    return [(*key, *values) for key, values in sorted(rows.items())]


def content(frame):
    """What a frame holds, and how many lines were left out, in the form of `read`."""
    skipped = sum(
        n for reason, n in frame.attrs["skipped"].items() if not reason.startswith("file without")
    )
    if "page" in frame:
        return [pages.tolist() for _, pages in frame.groupby("session")["page"]], skipped
    columns = [
        frame[name].tolist()
        for name in frame
        if name not in ("recording", "trajectory", "altitude", "time")
    ]
    columns.insert(
        1, (frame["time"] if "x" in frame else frame["time"].astype("int64") / 1e6).tolist()
    )
    if "altitude" in frame:
        columns.append(
            [
                None if math.isnan(metres) else round(metres, 2)
                for metres in frame["altitude"].tolist()
            ]
        )
    return list(zip(*columns, strict=True)), skipped
