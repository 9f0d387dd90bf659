"""What is said while a circuit breaker is open."""

from msgspec.structs import replace

from pystorm_source.records.bottleneck import BREAKER
from pystorm_source.records.outages import outage_text
from pystorm_source.records.progress_table import headline
from pystorm_source.records.record import LimitProgress, OutageProgress, PystormProgress
from tests.records.samples import progress

DOWN = OutageProgress(
    name="price", rate="50/s", since=3600.0, failed=10, calls=12, error="OSError: refused", probe_at=3608.2
)


def test_it_names_the_breaker_since_when_the_service_fails_and_the_next_probe():
    text = outage_text(DOWN)
    assert "the circuit breaker of limit 'price' (50/s) is open" in text
    assert "the service has failed since 01:00:00 UTC (10 of 12 calls); next probe at 01:00:08 UTC" in text
    assert "OSError: refused" in text


def test_it_takes_the_place_of_what_the_counts_say():
    record = progress(3)
    limit = LimitProgress(component="ask", name="price", rate="50/s", used=0.95, waits=0.9)
    record = replace(record, topology=replace(record.topology, limits=(limit,)))
    held = replace(record, outages=(DOWN,))
    assert (held.bottleneck.why, held.bottleneck.component, held.bottleneck.limit) == (BREAKER, "ask", "price")
    assert headline(held).startswith("ask waits for a circuit breaker: the circuit breaker of limit 'price'")
    assert record.bottleneck == record.topology.bottleneck == held.topology.bottleneck


def test_it_is_said_before_anything_is_counted():
    held = PystormProgress(outages=(DOWN,))
    assert headline(held).startswith("the query waits for a circuit breaker: ")
    assert PystormProgress.from_json(held.to_json()) == held
