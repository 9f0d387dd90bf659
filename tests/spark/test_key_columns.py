"""Columns whose values are an input row's key."""

import datetime

import pyarrow as pa
import pytest

from pystorm_source.spark.key_columns import key_at

AT = datetime.datetime(2020, 3, 8, 2, 30, tzinfo=datetime.UTC)


def batch_in(zone):
    at = pa.timestamp("us", tz=zone)
    map, struct = pa.map_(pa.string(), at), pa.struct([("x", at), ("y", pa.list_(at))])
    columns = {
        "at": pa.array([AT], at),
        "local": pa.array([AT.replace(tzinfo=None)], pa.timestamp("us")),
        "map": pa.array([{"a": AT}], map),
        "struct": pa.array([{"x": AT, "y": [AT, None]}], struct),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York", "+05:30"])
def test_a_key_does_not_depend_on_the_time_zone_of_the_session(zone):
    at = "2020-03-08T02:30:00+00:00"
    expected = f'["{at}", "2020-03-08T02:30:00", [["a", "{at}"]], {{"x": "{at}", "y": ["{at}", null]}}]'
    assert key_at([(0, batch_in(zone))], 0) == expected
