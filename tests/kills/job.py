"""Rounds in a process of their own, whose driver may be killed::

    python -m tests.kills.job MASTER FOLDER SEED [SEED ...]

The files of Spark go below FOLDER, those of a round below FOLDER/roundSEED: a round that was begun there goes on from
its checkpoint. Prints a JSON line for each round when it is done: count and checksum of its sink.
"""

import json
import sys
from pathlib import Path

from tests.kills import rounds
from tests.kills.session import session


def main(master: str, folder: str, *seeds: str) -> None:
    spark = session(master, Path(folder) / "session")
    for one in map(rounds.Round.of, map(int, seeds)):
        rounds.run(spark, one, one.folder(Path(folder)))
        print(json.dumps(rounds.content(spark, one.folder(Path(folder)))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
