"""Runs the bolts of ``pipes.py`` in our engine: the same code, the same script, the same form of answer."""

from pystorm_source import BatchingBolt, Bolt, Topology, Tuple
from pystorm_source.testing import PAUSE, ScriptedSpout, run_topology


def run(scenario):
    """The bolt gets the script's tuples; a tick comes in the middle of each pause of a second."""
    calls, verdicts, result = _run(scenario, accept=True)
    # What fails because a bolt behind fails all it gets, was anchored to.
    _, refused, _ = _run(scenario, accept=False)
    return {
        "calls": calls,
        "verdicts": verdicts,
        "anchored": sorted(id for id in refused if refused[id] == "fail" and verdicts[id] != "fail"),
        "emits": [list(row) for row in result.rows("subject")],
        "died": result.micro_batches == 0,
    }


def _run(scenario, accept):
    names = {"BatchingBolt": BatchingBolt, "Bolt": Bolt, "Tuple": Tuple}
    calls = names["calls"] = []
    exec(scenario["code"], names)
    ids = [str(number) for number, step in enumerate(scenario["script"]) if step != "tick"]
    verdicts = dict.fromkeys(ids)

    class Lines(ScriptedSpout):
        outputs = ["a", "n"]
        rows = list(_rows(scenario["script"]))
        max_fails = 0

        def ack(self, tup_id):
            verdicts[ids[tup_id]] = verdicts[ids[tup_id]] or "ack"
            super().ack(tup_id)

        def fail(self, tup_id):
            verdicts[ids[tup_id]] = verdicts[ids[tup_id]] or "fail"
            super().fail(tup_id)

    class Behind(Bolt):
        def process(self, tup):
            if not accept:
                self.fail(tup)

    class Made(Topology):
        config = {"topology.tick.tuple.freq.secs": 1, "topology.dead.letter": "drop"}
        lines = Lines.spec()
        subject = names["Subject"].spec(inputs=[lines])
        behind = Behind.spec(inputs=[subject])

    return calls, verdicts, run_topology(Made, errors="collect")


def _rows(script):
    pause = 1.5
    for step in script:
        if step == "tick":
            yield PAUSE(pause)
            pause = 1
        else:
            yield step
