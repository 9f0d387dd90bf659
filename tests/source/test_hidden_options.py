"""No secret of an option is in what Spark shows of a query."""

import json

import pytest

from pystorm_source import read, read_stream
from tests.effects.topologies import Lines, Sink

pytestmark = pytest.mark.spark

REDIS = "redis://:hunter2@127.0.0.1:1/0"
CONFIG = {"service.url": "http://127.0.0.1:1"}


def test_no_plan_shows_the_password_of_a_redis(spark, tmp_path, capfd):
    (tmp_path / "in").mkdir()
    path, key = str(tmp_path / "in"), "topology.rate.limit.redis"
    frames = [
        read(spark, Lines, path=path, config=CONFIG, options={key: REDIS}),
        read_stream(spark, Lines, path=path, config={**CONFIG, key: REDIS}),
        read_stream(spark, Lines, path=path, config=CONFIG, options={key: REDIS}),
        read_stream(spark, Lines, path=path, config=CONFIG, options={f"secret.{key}": REDIS}),
        spark.readStream.format("pystorm")
        .options(**{"topology": f"{Lines.__module__}:Lines", f"secret.{key}": REDIS, "path": path})
        .load(),
    ]
    for frame in frames:
        frame.explain(True)
        frame.explain("formatted")
        assert "hunter2" not in frame._jdf.queryExecution().toString()
    assert frames[0].count() == 0, "the option is read"
    out = capfd.readouterr()
    assert "hunter2" not in out.out + out.err


def test_a_sink_reads_a_hidden_option(spark):
    rows = spark.range(0).selectExpr("cast(id AS string) AS line")
    writer = rows.write.format("pystorm").mode("append").option("topology", f"{Sink.__module__}:Sink")
    writer = writer.option("config", json.dumps(CONFIG))
    with pytest.raises(Exception, match="has no process that gives"):
        writer.save()
    writer.option("secret.topology.rate.limit.redis", REDIS).save()
