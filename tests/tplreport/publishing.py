"""A process that publishes and notes what it was handed out, until it is killed."""

import os
import sys

import tplreport as tr


def counts_of(time):
    return [1000 + time, 7 * time]


def main(path, notes, last):
    handed_out = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    publisher = tr.Publisher(path)
    while (time := len(publisher)) <= last:
        try:
            noisy = publisher.publish(time, counts_of(time)) if time % 7 else publisher.skip(time) and "skipped"
        except ValueError as error:
            if "has passed" in str(error) or "was skipped" in str(error):
                continue  # another process was faster
            raise
        os.write(handed_out, f"{time} {noisy}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
