"""Whatever a script holds: rows come as often as their fails say, micro-batches end where it says, nothing is lost."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.testing import ABORT, EOF, FAIL, PAUSE, run_topology
from tests.sizes import sized
from tests.testing.topologies import Total, scripted

MAX_FAILS = 3

steps = st.one_of(
    st.integers(0, 4).map(lambda fails: ("row", fails)),
    st.floats(0, 1e6).map(PAUSE),
    st.sampled_from([EOF, ABORT]),
)


def script_of(drawn):
    """The rows of a script, each line its own number."""
    script = []
    for step in drawn:
        if isinstance(step, tuple):
            script += [[f"line{len(script)}"], *[FAIL] * step[1]]
        else:
            script.append(step)
    return script


def parts_of(script):
    """The script cut behind each EOF; the last part is left out if it is empty and not the only one."""
    parts = [[]]
    for step in script:
        if step is EOF:
            parts.append([])
        else:
            parts[-1].append(step)
    return parts if parts[-1] or len(parts) == 1 else parts[:-1]


@settings(max_examples=sized(300), deadline=None)
@given(drawn=st.lists(steps, max_size=12), seed=st.none() | st.integers(0, 1000))
def test_any_script(drawn, seed):
    script = script_of(drawn)
    parts = parts_of(script)
    config = {"topology.tick.tuple.freq.secs": 50_000, "topology.dead.letter": "drop"}
    made = scripted(*script, bolts=lambda words: {"total": Total.spec(inputs=[words])})
    result = run_topology(made, config=config, seed=seed)
    assert result.errors == []
    assert result.micro_batches == len(parts)
    assert result.attempts == 1 + script.count(ABORT)
    came = Counter(line for (line,) in result.rows("lines"))
    for part in parts:
        for i, step in enumerate(part):
            if isinstance(step, list):
                fails = next((j for j, other in enumerate(part[i + 1 :]) if other is not FAIL), len(part) - i - 1)
                most = 1 + min(fails, MAX_FAILS)
                # A FAIL happens once: an attempt that dies later may have used it up.
                least = 1 if ABORT in part else most
                assert least <= came.pop(step[0]) <= most
    assert not came
    assert result.rows("words") == result.rows("lines")
    assert result.acked["lines"] + result.failed["lines"] == result.emitted["lines"] == len(result.rows("lines"))
    assert result.unsettled["lines"] == 0 and result.acked["lines"] >= 0
    assert len(result.rows("total")) >= len(parts)
