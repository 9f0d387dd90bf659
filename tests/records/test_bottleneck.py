"""What is named as the bottleneck of a topology."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pystorm_source.records.bottleneck import BUSY, DOWNSTREAM, LEAST, LIMIT, SPARK, START, UPSTREAM, bottleneck
from pystorm_source.records.record import ComponentProgress, EdgeProgress, LimitProgress, TopologyProgress

SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])


def chain(*components, scheduler="inline", elapsed=1.0):
    """One after the other."""
    edges = tuple(
        EdgeProgress(source=one.name, target=two.name)
        for one, two in zip(components, [*components[1:], ComponentProgress(name="")], strict=True)
    )
    return TopologyProgress(components=components, edges=edges, scheduler=scheduler, elapsed=elapsed)


def spout(capacity=0.05, **stalls):
    return ComponentProgress(name="spout", kind="spout", capacity=capacity, stalls=stalls)


def bolt(name, capacity=0.05, queue=10, pending=0, **stalls):
    return ComponentProgress(
        name=name,
        capacity=capacity,
        stalls=stalls,
        queue_high_mark=queue,
        queue_capacity=1024,
        pending_high_mark=pending,
    )


def named(topology, trigger=0.0):
    found = bottleneck(topology, trigger)
    assert found is not None
    assert found.advice
    return found.component, found.why


@SCHEDULED
def test_a_slow_second_bolt(scheduler):
    full = {"downstream_full": 0.93}
    made = chain(
        spout(**full),
        bolt("one", queue=1024, **full),
        bolt("two", 0.95, queue=1024),
        bolt("three"),
        scheduler=scheduler,
    )
    assert named(made) == ("two", BUSY)
    assert bottleneck(made).capacity == 0.95


@SCHEDULED
def test_a_slow_bolt_with_too_few_pending_trees_is_still_the_slow_one(scheduler):
    made = chain(spout(max_spout_pending=0.97), bolt("one", 0.9), scheduler=scheduler)
    assert named(made) == ("one", BUSY)


def test_components_that_share_a_thread_are_busy_together():
    parts = [bolt(f"b{i}", 0.1) for i in range(8)]
    assert named(chain(spout(0.05), *parts, bolt("most", 0.12))) == ("most", BUSY)
    assert bottleneck(chain(spout(0.05), *parts, bolt("most", 0.12), scheduler="threads")) is None


@SCHEDULED
def test_a_source_that_gives_too_little(scheduler):
    waiting = bolt("one", input_empty=0.9)
    assert named(chain(spout(nothing_to_emit=0.9), waiting, scheduler=scheduler)) == ("spout", UPSTREAM)


@SCHEDULED
def test_a_sink_that_is_slow(scheduler):
    full = {"downstream_full": 0.8}
    made = chain(spout(**full), bolt("one", queue=1024, output_full=0.85), scheduler=scheduler)
    assert named(made) == ("", SPARK)


@SCHEDULED
def test_too_few_pending_trees_of_bolts_that_are_idle(scheduler):
    made = chain(spout(max_spout_pending=0.9), bolt("one", 0.1), scheduler=scheduler)
    assert named(made) == ("spout", DOWNSTREAM)
    assert "max.spout.pending" in bottleneck(made).advice


@SCHEDULED
def test_an_async_bolt_whose_requests_wait(scheduler):
    made = chain(
        spout(downstream_full=0.9), bolt("ask", 0.1, queue=1024, pending=100), bolt("after"), scheduler=scheduler
    )
    assert named(made) == ("ask", DOWNSTREAM)
    assert "topology.async.max.pending" in bottleneck(made).advice


@SCHEDULED
def test_a_micro_batch_that_is_mostly_no_task(scheduler):
    made = chain(spout(0.4), bolt("one", 0.4), scheduler=scheduler, elapsed=1.0)
    assert named(made, trigger=10.0) == ("", SPARK)


def test_the_start_of_python_in_the_first_micro_batch_is_not_taken_for_spark():
    made = chain(spout(0.3), bolt("one", 0.3), elapsed=5.0)
    first = replace(made, batch=0)
    assert named(first, trigger=25.0) == ("", START)
    assert "the first micro-batch starts Python" in bottleneck(first, 25.0).advice
    assert named(replace(made, batch=1), trigger=25.0) == ("", SPARK)


def limited(used):
    """One that waits for permits nearly all the time."""
    held = LimitProgress(component="ask", name="price", rate="50/s", used=used, waits=0.9)
    return replace(chain(spout(), bolt("ask"), elapsed=10.0), limits=(held,))


@pytest.mark.parametrize(
    ("used", "trigger", "share", "advice"),
    [
        (0.96, 10.0, "96%", "only a higher value"),
        (0.96, 0.0, "96%", "only a higher value"),
        (0.96, 11.5, "83%", "so raise batch.target.millis"),
        (0.6, 10.0, "60%", "so raise batch.target.millis"),
    ],
)
def test_only_a_limit_that_is_used_up_is_told_to_be_raised(used, trigger, share, advice):
    found = bottleneck(limited(used), trigger)
    assert (found.component, found.why) == ("ask", LIMIT)
    assert f"{share} of it is used" in found.advice
    assert advice in found.advice
    assert ("higher value" in found.advice) == (advice == "only a higher value")


def test_a_limit_of_which_less_than_half_is_used_is_not_the_cause():
    assert bottleneck(limited(0.48), 10.0) is None


def test_nothing_is_named_if_nothing_holds_back():
    assert bottleneck(TopologyProgress()) is None
    assert bottleneck(chain(spout(), bolt("one")), 1.1) is None


shares = st.floats(0, 1)
components = st.builds(
    lambda capacity, stalls, queue, pending: dict(
        capacity=capacity, stalls=stalls, queue_high_mark=queue, queue_capacity=1024, pending_high_mark=pending
    ),
    shares,
    st.dictionaries(
        st.sampled_from(["downstream_full", "input_empty", "output_full", "nothing_to_emit", "max_spout_pending"]),
        shares,
    ),
    st.integers(0, 1024),
    st.integers(0, 1000),
)


@given(st.lists(components, min_size=1, max_size=6), st.sampled_from(["inline", "threads"]), st.floats(0, 100))
def test_whatever_is_named_is_there_and_to_blame(drawn, scheduler, trigger):
    made = chain(
        *(ComponentProgress(name=f"c{i}", kind="bolt" if i else "spout", **each) for i, each in enumerate(drawn)),
        scheduler=scheduler,
    )
    found = bottleneck(made, trigger)
    if found is None:
        assert sum(each["capacity"] for each in drawn) < LEAST or scheduler == "threads"
        return
    assert found.component in {"", *(component.name for component in made.components)}
    assert (found.component == "") == (found.why == SPARK)
    assert 0 <= found.capacity <= 1
    if found.why == BUSY:
        assert found.capacity == max(each["capacity"] for each in drawn)


@given(st.integers(1, 5), st.integers(0, 4), st.floats(0.7, 1), st.sampled_from(["inline", "threads"]))
def test_the_one_slow_bolt_of_a_chain_is_named_wherever_it_stands(length, place, capacity, scheduler):
    place %= length
    full = {"downstream_full": capacity - 0.01}
    made = chain(
        spout(0.02, **full),
        *(
            bolt(f"b{i}", capacity if i == place else 0.02, 1024 if i <= place else 3, **(full if i < place else {}))
            for i in range(length)
        ),
        scheduler=scheduler,
    )
    assert named(made) == (f"b{place}", BUSY)
