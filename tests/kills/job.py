"""The query of some rounds in a process of its own, whose driver may be killed::

    python -m tests.kills.job MASTER SESSION FOLDER SEED [SEED ...]

The files of Spark go below SESSION, those of the query below FOLDER: one that was begun there goes on from its
checkpoint. Prints count and checksum of its sink when it is done, as JSON.
"""

import json
import sys
from pathlib import Path

from tests.kills import rounds
from tests.kills.session import session


def main(master: str, files: str, folder: str, *seeds: str) -> None:
    spark = session(master, Path(files))
    rounds.run(spark, [rounds.Round.of(int(seed)) for seed in seeds], Path(folder))
    print(json.dumps(rounds.content(spark, Path(folder))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
