"""``pystorm-source bundle``: what is in the archive of a query, which query it is of, and that no secret is in it."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from pystorm_source import Bolt, Topology
from pystorm_source.records.record_file import RecordFile
from pystorm_source.spouts import MemorySpout

SECRET = "hunter22"
FILES = {"README.txt", "records.jsonl", "progress.txt", "plan.txt", "page.html", "stacks.txt", "check.json"}
FILES |= {"environment.json", "options.yaml"}


class LogIn(Bolt):
    """Its errors say the password, as those of libraries do."""

    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.n == 2:
            raise ValueError(f"refused at redis://app:{SECRET}@db/0, password={SECRET}")
        self.emit([tup.values.n])


class LogIns(Topology):
    """Of three numbers one fails."""

    numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2], [3]])
    logged = LogIn.spec(inputs=[numbers])


def bundle(folder: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pystorm_source", "bundle", *map(str, arguments)]
    env = os.environ | {"TMPDIR": str(folder)} | environment  # no queries but those of this test
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=110)


def texts(archive: Path) -> dict[str, str]:
    """Name → text of the files in it, all of which lie in one folder."""
    with zipfile.ZipFile(archive) as inside:
        assert {name.split("/")[0] for name in inside.namelist()} == {archive.stem}
        return {name.split("/", 1)[1]: inside.read(name).decode() for name in inside.namelist()}


@pytest.mark.spark
def test_a_real_query_is_packed_without_its_secrets(spark, tmp_path):
    records = tmp_path / "records"
    reader = spark.readStream.format("pystorm").option("topology", "tests.cli.test_bundle:LogIns")
    reader = reader.options(**{"topology.max.spout.retries": 0, "topology.dead.letter": "drop"})
    reader = reader.option("config", json.dumps({"price.url": "http://prices", "price.password": SECRET}))
    query = reader.option("progress.path", str(records)).option("stream", "logged").load().writeStream.format("noop")
    started = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    assert started.awaitTermination(60)
    (tmp_path / "options.yaml").write_text(
        f"topology.rate.limit.redis: redis://:{SECRET}@db:6379/0\nmy.password: x1y2\n"
    )
    done = bundle(tmp_path, records, "--config", "options.yaml", SPARK_AUTH_SECRET=SECRET, PYSTORM_DEBUG="0")
    assert done.returncode == 0, done.stderr
    archive = tmp_path / done.stdout.strip()
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    found = texts(archive)
    assert set(found) == FILES
    assert not [name for name, text in found.items() if SECRET in text or "x1y2" in text]
    (file,) = records.iterdir()
    assert len(found["records.jsonl"].splitlines()) == len(file.read_bytes().splitlines())
    (tmp_path / "again.jsonl").write_text(found["records.jsonl"])
    read, original = RecordFile(tmp_path / "again.jsonl").read(), RecordFile(file).read()
    assert [record.topology.component("logged").total for record in read.records] == [
        record.topology.component("logged").total for record in original.records
    ]
    assert "refused at" in found["records.jsonl"] and "(redacted)" in found["records.jsonl"]
    assert "logged.default -> Spark" in found["plan.txt"] and "numbers.default -> logged" in found["plan.txt"]
    assert "logged" in found["progress.txt"] and "<!doctype html>" in found["page.html"].lower()
    assert "cannot be asked" in found["stacks.txt"]
    given = yaml.safe_load(found["options.yaml"])
    assert given["query"]["topology.max.spout.retries"] == "0" and given["query"]["stream"] == "logged"
    assert given["query"]["price.url"] == "http://prices" and given["query"]["price.password"] == "(redacted)"
    assert given["options.yaml"]["my.password"] == "(redacted)"
    assert SECRET not in file.read_text().splitlines()[0]
    assert {"python", "pyspark"} <= {each["item"] for each in json.loads(found["check.json"])}
    assert json.loads(found["environment.json"])["SPARK_AUTH_SECRET"] == "(redacted)"


def record_file(folder: Path, topology: str, run: str, **more: object) -> Path:
    path = folder / f"{topology}-{run}.jsonl"
    begin = {"kind": "begin", "topology": topology, "run": run, "components": [], "edges": []}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (begin, {"batchId": 0, "rows": 5, **more})) + '{"cut')
    return path


@pytest.mark.parametrize("text", [f"password={SECRET}", f"s3://key:{SECRET}@bucket", f"Token = '{SECRET}'"])
def test_a_secret_in_any_text_of_a_record_is_left_out(tmp_path, monkeypatch, text):
    from pystorm_source.cli import bundle as module

    monkeypatch.setattr(module, "findings", lambda: ())
    path = record_file(tmp_path, "Orders", "1234567", note=text, apiKey=SECRET, inner=[{"my.secret": SECRET}])
    found = dict(module._texts(path, {}))
    assert set(found) == FILES and SECRET not in "".join(found.values())
    assert json.loads(found["records.jsonl"].splitlines()[1])["rows"] == 5
    assert "bundle --config FILE" in found["options.yaml"] and yaml.safe_load(found["options.yaml"]) == {}


def test_a_query_is_found_by_its_name_the_beginning_of_its_run_or_its_file(tmp_path, monkeypatch):
    from pystorm_source.cli import bundle as module

    orders, prices = (
        record_file(tmp_path, "Orders", "1234567"),
        record_file(tmp_path, "Prices", "89abcde", queryId="77-66"),
    )
    os.utime(orders, (1, 1))
    monkeypatch.setattr(module, "private_folders", lambda: [tmp_path])
    for query, file in {"Orders": orders, "1234": orders, "77-6": prices, str(orders): orders}.items():
        assert module._file_of(query) == file
    assert module._file_of("") == module._file_of(str(tmp_path)) == prices


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Nothing"], "Given: 'Nothing'"),
        ([], "no query has written records here"),
        (["--config", "gone.yaml"], "Given: 'gone.yaml'"),
    ],
)
def test_what_is_not_there_is_refused_with_what_was_given(tmp_path, monkeypatch, arguments, said):
    from typer.testing import CliRunner  # not above: Spark's Python imports this module for its topology

    from pystorm_source.cli import bundle as module
    from pystorm_source.cli.main import app

    monkeypatch.setattr(module, "private_folders", list)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bundle", *arguments])
    assert done.exit_code == 2 and said in done.stderr and not list(tmp_path.glob("*.zip"))
