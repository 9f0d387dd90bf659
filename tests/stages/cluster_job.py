"""Reads random topologies over a cluster: ``cluster_job.py MASTER SEED...``.

Prints one line of JSON: seed → rows.
"""

import json
import sys

from pyspark.sql import SparkSession

from pystorm_source import read
from pystorm_source.plan import compile_plan
from tests.stages.random_topologies import random_topology


def main(master: str, *seeds: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    found = {}
    for seed in seeds:
        made = random_topology(int(seed))
        streams = "all" if len(compile_plan(made).open_streams) > 1 else "one"
        rows = read(spark, made, scope="cluster", streams=streams).collect()
        found[seed] = sorted(json.dumps([row.of, row.key, row.n]) for row in rows if row.of is not None)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
