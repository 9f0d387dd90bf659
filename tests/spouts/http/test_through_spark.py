"""An API read by a streaming query whose processes are killed: each row once."""

import pytest

from tests.source.queries import Query
from tests.spouts.http.api import api, options

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def test_a_query_that_is_killed_reads_each_row_once(spark, tmp_path):
    """In the middle of a page, behind it and in a bolt; and it is started again, with one micro-batch to run anew."""
    query = Query(tmp_path)
    with api() as server:
        named = {
            **options(server),
            "topology": "tests.spouts.http.api:Killed",
            "path": str(tmp_path),
            "journal.path": str(tmp_path / "journal"),
            "maxOffsetsPerTrigger": "25",
            "batch.target.millis": "300",
        }
        for count in (47, 30):
            server.fill(count)
            query.run(spark.readStream.format("pystorm").options(**named).load())
            rows = dict(query.batches)  # a micro-batch that is run again has its number, and its rows
            assert all(sorted(rows[number]) == sorted(found) for number, found in query.batches)
            assert sorted(row[0] for found in rows.values() for row in found) == server.ids()
            query.forget_commit()
        assert {path.name for path in tmp_path.glob("*killed*")} >= {"killed at 12", "killed at 36", "bolt killed"}
