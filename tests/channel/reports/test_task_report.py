"""Reports as JSON: what is not exactly one is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.channel.reports.task_report import RangeReport, Reason, TaskReport, decode
from tests.channel.reports.made_reports import body, report
from tests.worker.running import Numbers, rows, topology, worker_of

counts = st.integers(0, 2**63 - 1)
seconds = st.floats(0, 1e8)


def changed(**changes):
    return json.dumps({**json.loads(body()), **changes}).encode()


@given(
    st.builds(
        dict,
        rows=counts,
        acked=counts,
        failed=counts,
        seconds=st.floats(1e-6, 1e8),
    ),
    st.text(max_size=100),
    st.dictionaries(st.sampled_from(Reason.__args__), seconds),
)
def test_what_a_task_sends_is_what_the_runner_has(numbers, partition, stalls):
    sent = report(partition=partition, stalls=stalls, **numbers)
    got = decode(body(partition=partition, stalls=stalls, **numbers), 12.5)
    assert isinstance(got, TaskReport)
    assert got.arrived == 12.5
    for name in RangeReport.__struct_fields__:
        assert getattr(got, name) == getattr(sent, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"v": True},
        {"arrived": 1.0},
        {"token": "x"},
        {"__class__": "os.system"},
        {"batch": "x" * 129},
        {"spout": "x" * 1025},
        {"partition": "x" * 4097},
        {"partition": None},
        {"start": -1},
        {"start": 0.0},
        {"end": 2**63},
        {"start": 100, "end": 0, "offsets": 0},
        {"offsets": 101},
        {"attempt": 1_000_001},
        {"rows": "100"},
        {"rows": True},
        {"seconds": -0.1},
        {"seconds": 0.0},
        {"seconds": 5e-324},
        {"seconds": 1e9},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": "0.5"},
        {"stalls": {"boredom": 1.0}},
        {"stalls": {"downstream_full": -1.0}},
        {"stalls": []},
        {"components": {"q": 5}},
        {"components": {"q": [-1]}},
        {"components": {"b": [float("inf")]}},
        {"components": {"queue_high_mark": [5]}},
        {"latency": {"p50": 1, "p95": 1}},
        {"latency": {"p50": 1, "p95": 1, "p99": float("inf")}},
    ],
    ids=str,
)
def test_nonsense_is_refused(changes):
    decode(changed(), 0.0)
    with pytest.raises(ValueError):
        decode(changed(**changes), 0.0)


@pytest.mark.parametrize("name", sorted(json.loads(body()).keys() - {"components"}))
def test_nothing_may_be_left_out(name):
    told = json.loads(body())
    del told[name]
    with pytest.raises(ValueError, match=name):
        decode(json.dumps(told).encode(), 0.0)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"[" * 8000,
        b'{"v":' * 1600,
        b'{"v":' + b"9" * 8000 + b"}",
        body().replace(b"run", b"\\ud800"),
        b"\xff\xfe",
        b"\x80\x04K\x01.",
        body() + b"x",
    ],
    ids=lambda garbage: repr(garbage[:12]),
)
def test_garbage_is_refused(garbage):
    with pytest.raises(ValueError):
        decode(garbage, 0.0)


@given(st.binary(max_size=500))
def test_bytes_are_a_report_or_an_error(data):
    with pytest.raises(ValueError):
        decode(data, 0.0)


def test_a_worker_has_no_reason_that_a_report_does_not_know():
    worker = worker_of(topology(s=Numbers.spec()), "s")
    rows(worker.run("s", "p", 0, 10))
    assert set(worker.last_run().stalls) == set(Reason.__args__)
    worker.stop()
