"""``log_writer.py FOLDER LINES A_SECOND DONE``: writes a log of so many lines, which is rotated ``ROTATIONS`` times.

As logrotate does it without options: ``app.log.1`` becomes ``app.log.2``, ``app.log`` becomes ``app.log.1``, and a new
``app.log`` begins. The file DONE is made at the end.
"""

import sys
import time
from pathlib import Path

from benchmarks.job_programs.lines import line

ROTATIONS = 10
CHUNK = 1_000


def rotate(folder: Path, rotated: int) -> None:
    for age in range(rotated, 0, -1):
        (folder / f"app.log.{age}").rename(folder / f"app.log.{age + 1}")
    (folder / "app.log").rename(folder / "app.log.1")


def write(folder: Path, lines: int, a_second: int) -> None:
    chunk = min(CHUNK, max(1, lines // (2 * ROTATIONS)))
    each, began, rotated = lines // (ROTATIONS + 1), time.monotonic(), 0
    file = (folder / "app.log").open("w")
    for start in range(0, lines, chunk):
        time.sleep(max(0.0, began + start / a_second - time.monotonic()))
        if start >= (rotated + 1) * each and rotated < ROTATIONS:
            file.close()
            rotate(folder, rotated)
            rotated += 1
            file = (folder / "app.log").open("w")
        file.write("".join(f"{line(number)}\n" for number in range(start, min(start + chunk, lines))))
        file.flush()
    file.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    Path(sys.argv[4]).touch()
