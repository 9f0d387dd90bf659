"""Whatever the topology and its bolts' verdicts: spouts get what a model of sets predicts, and when.

``PYSTORM_ACKING_EXAMPLES``: how many topologies to try; with ``HYPOTHESIS_PROFILE=search`` others than last time.
"""

import os

import pytest
from hypothesis import HealthCheck, assume, event, given, settings

from pystorm_source import Topology
from pystorm_source.testing import PAUSE, run_topology
from tests.acking.drawn import FIELDS, GROUPINGS, Unfit, bolt_of, nodes, shrinking
from tests.acking.fed import SpoutCalls, feeder
from tests.acking.model import Model
from tests.sizes import sized

EXAMPLES = int(os.environ.get("PYSTORM_ACKING_EXAMPLES", sized(25)))
# Not how many topologies are unfit: if most were, only the smallest would be tried.
BY_MACHINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
VERDICTS = ["ack", "ack", "ack", "fail", "raise", "never", "hold", "doom", "reset"]
TIMEOUT = 10.5
TICKS = [2.37 + 0.113 * number for number in range(8)]


def drawn_case(draws):
    """(bolts, spout → pauses before its tuples, whether messages time out, processes of each bolt)."""
    spouts = draws.integer(1, 3)
    pauses = [[draws.integer(0, 4) for _ in range(draws.integer(1, 4))] for _ in range(spouts)]
    drawn, timeouts = nodes(draws, spouts, VERDICTS), draws.integer(0, 3) > 0
    return drawn, pauses, timeouts, [min(node.par, draws.one_of([0, 0, 1, 2])) for node in drawn]


def emits_of(pauses):
    """(time, spout, root), in order of time; a spout's message ids count its roots."""
    made, root = [], 0
    for spout, each in enumerate(pauses):
        now = 0
        for pause in each:
            now += pause
            made.append((float(now), spout, root))
            root += 1
    return sorted(made)


def topology_of(drawn, pauses, calls, lasts, processes):
    """The real one. Its names sort as its bolts do. The spouts end when it has lasted for that many seconds."""
    body, specs, root = {}, {}, 0
    for spout, each in enumerate(pauses):
        steps = []
        for pause in each:
            steps += [PAUSE(pause), [root, ""]]
            root += 1
        specs[-1 - spout] = body[f"spout{spout}"] = feeder(
            calls[spout], *steps, PAUSE(lasts - sum(pauses[spout])), outputs=FIELDS
        )
    for number, node in enumerate(drawn):
        inputs = {specs[producer]: GROUPINGS[grouping] for producer, grouping in node.inputs}
        config = {"topology.tick.tuple.freq.secs": TICKS[number]}
        specs[number] = body[f"bolt{number}"] = bolt_of(node, number).spec(
            inputs=inputs, par=node.par, config=config, processes=processes[number]
        )
    return type("Drawn", (Topology,), body)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=BY_MACHINE)
@given(case=shrinking(drawn_case))
def test_spouts_hear_what_the_model_says(case, scheduler):
    try:
        event(check(case, scheduler))
    except Unfit:
        assume(False)


def check(case, scheduler):
    """Fails if the spouts of a real run get anything else than the model says; what it was like, in a word. Raises
    Unfit."""
    drawn, pauses, timeouts, processes = case
    model = Model(drawn, emits_of(pauses), TICKS[: len(drawn)], TIMEOUT if timeouts else None).run()
    # Two tasks of a bolt fire at the same tick, and one fails what the other holds: between threads either comes first,
    # and a later one leaves it out. All else is the same under both schedulers.
    if scheduler == "threads" and model.one_order:
        raise Unfit
    calls = [SpoutCalls() for _ in pauses]
    for each in calls:
        each.clock = calls[0].clock
    config = {
        "topology.message.timeout.secs": TIMEOUT,
        "topology.enable.message.timeouts": timeouts,
        "pystorm.log.level": "critical",
    }
    result = run_topology(
        topology_of(drawn, pauses, calls, model.now + 1, processes), config, scheduler, calls[0].clock, together=True
    )
    found, root = {}, 0
    for spout, each in enumerate(pauses):
        assert len(calls[spout].notified) == len(calls[spout].at), "notified twice"
        for (verdict, tup_id), time in calls[spout].at.items():
            found[root + tup_id] = (verdict, time)
        root += len(each)
    if timeouts and any(processes):
        # In a process of its own a tuple's time begins anew when its bolt takes it, and not with others of its tree.
        return "time-outs in processes"
    assert {root: verdict for root, (verdict, _) in found.items()} == {
        root: verdict for root, (verdict, _) in model.notified.items()
    }
    for root, (_, time) in found.items():
        assert time == pytest.approx(model.notified[root][1], abs=0.009)
    assert sum(result.unsettled.values()) == root_count(pauses) - len(model.notified)
    if any(processes):
        # What one task fails, another one in a process of its own may not have heard of yet.
        return f"trees that failed, in processes: {sum(verdict == 'fail' for verdict, _ in model.notified.values())}"
    fewest, most = model.duplicate_verdicts()
    for number in range(len(drawn)):
        assert fewest[number] <= result.duplicate_verdicts[f"bolt{number}"] <= most[number]
    return f"trees that failed: {sum(verdict == 'fail' for verdict, _ in model.notified.values())}"


def root_count(pauses):
    return sum(map(len, pauses))
