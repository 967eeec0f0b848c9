"""Four processes publish and note what they were handed out, while they are killed and started
anew.

``python -m tests.tplreport.publishing.killed_workers PATH NOTES LAST KILLS``; workers are forked,
so that they start at once.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pandas as pd

import tplreport as tr

FIRST_HOUR = 5
WORKERS = 4


def run_and_kill_workers(path, notes, last, kills):
    """Run this module until time `last` is published, with so many kills; the lines that all
    workers noted."""
    words = [
        sys.executable,
        "-m",
        "tests.tplreport.publishing.killed_workers",
        path,
        notes,
        str(last),
        str(kills),
    ]
    root = os.fspath(Path(__file__).parents[3])
    subprocess.run(words, cwd=root, check=True, stderr=subprocess.DEVNULL)
    texts = [Path(f"{notes}{number}").read_text() for number in range(WORKERS)]
    return "".join(texts).splitlines()


def counts_of(at):
    return [1000 + at, 7 * at]


def statistics_of(at):
    """Three statistics, of which one is due every fourth time."""
    statistics = {"people": counts_of(at), "visits": [3 * at]}
    if at % 4 == 1:
        statistics["spent"] = [5000.25]
    return statistics


def time_of(publisher, at):
    """The time of a position: a number, or an hour of a series from `FIRST_HOUR` on."""
    if publisher.settings["step"] == 1:
        return at
    return pd.Timestamp(2024, 5, 1, FIRST_HOUR) + at * pd.Timedelta(publisher.settings["step"])


def publish(path, notes, last):
    handed_out = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    publisher = tr.Publisher(path)
    while (at := len(publisher)) <= last:
        try:
            noisy = publish_or_skip(publisher, at)
        except ValueError as error:
            if "has passed" in str(error) or "was skipped" in str(error):
                continue  # another process was faster
            raise
        os.write(handed_out, f"{at} {noisy}\n".encode())


def publish_or_skip(publisher, at):
    now = time_of(publisher, at)
    if at % 7:
        if "statistics" in publisher.settings:
            noisy = publisher.publish(now, statistics_of(at))
            return {name: values.tolist() for name, values in noisy.items()}
        return publisher.publish(now, counts_of(at))
    publisher.skip(now)
    return "skipped"


def start(*arguments):
    if worker := os.fork():
        return worker
    try:
        publish(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(path, notes, last, kills):
    rng = np.random.default_rng(3)
    # so that workers do not spend their lives on imports
    tr.release_counts([1], tr.Publisher(path).remaining, 1)
    workers = [start(path, f"{notes}{number}", last) for number in range(WORKERS)]
    for _ in range(kills):
        time.sleep(rng.uniform(0.0, 0.2))
        number = int(rng.integers(WORKERS))
        os.kill(workers[number], signal.SIGKILL)
        os.waitpid(workers[number], 0)
        workers[number] = start(path, f"{notes}{number}", last)
    sys.exit(max(os.waitpid(worker, 0)[1] for worker in workers) > 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
