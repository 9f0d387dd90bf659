"""Objects read by a streaming query whose processes are killed: each row once."""

import datetime
import json

import pyarrow as pa
import pytest

from tests.source.queries import Query
from tests.spouts.objects.lake import Folder, ndjson, written

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def test_a_query_that_is_killed_reads_each_row_once(spark, tmp_path):
    """In the middle of an object and in a bolt; and it is started again, with one micro-batch to run anew."""
    lake, query = Folder(tmp_path / "lake"), Query(tmp_path)
    options = {
        "topology": "tests.spouts.objects.lake:Killed",
        "path": lake.path,
        "journal.path": str(tmp_path / "journal"),
        "maxOffsetsPerTrigger": "400",
    }
    for begin in (0, 50):
        for n in range(begin, begin + 50, 5):
            lake.put(f"day=2026-01-0{1 + n // 50}/{99 - n:02d}.json", ndjson(range(n, n + 5)))
        query.run(spark.readStream.format("pystorm").options(**options).load())
        rows = dict(query.batches)  # a micro-batch that is run again has its number, and its rows
        assert all(sorted(rows[number]) == sorted(found) for number, found in query.batches)
        found = sorted(row for batch in rows.values() for row in batch)
        assert found == [(n, datetime.date(2026, 1, 1 + n // 50)) for n in range(begin + 50)]
        query.forget_commit()
    assert {path.name for path in tmp_path.glob("*killed*")} == {"spout killed", "bolt killed"}


def test_a_query_goes_on_while_the_schema_of_parquet_grows_and_changes(spark, tmp_path):
    lake, query = Folder(tmp_path / "lake"), Query(tmp_path)
    options = {"topology": "tests.spouts.objects.lake:Drifting", "path": lake.path}
    options["journal.path"] = str(tmp_path / "journal")
    tables = [
        {"id": [1]},
        {"id": [2], "item": ["hat"], "price": [1.5]},
        {"id": ["3"], "Item": ["cap"], "item": ["tie"]},
    ]
    for number, columns in enumerate(tables):
        lake.put(f"{number}.parquet", written(pa.table(columns)))
        frame = spark.readStream.format("pystorm").options(**options).load()
        assert frame.schema["_rescued_data"].dataType.simpleString() == "string"
        query.run(frame)
    (one, two, three) = [row for _, rows in query.batches for row in rows]
    assert one == (1, None, None)
    assert (*two[:2], json.loads(two[2])) == (2, "hat", {"price": 1.5, "_file_path": f"{lake.path}/1.parquet"})
    rest = {"id": "3", "Item": "cap", "_file_path": f"{lake.path}/2.parquet"}
    assert (*three[:2], json.loads(three[2])) == (None, "tie", rest)
