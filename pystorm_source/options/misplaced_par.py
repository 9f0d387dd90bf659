"""The number of tasks, ``par``, in the wrong place: among options, in a configuration, under another name."""

from typing import Any

from pystorm_source.errors import given

WORDS = frozenset(
    ("par", "parallelism", "parallelism_hint", "parallelismhint", "num_tasks", "numtasks", "tasks", "num_executors")
)
"""Names for it in Storm, streamparse, Flink and Spark."""


def remedy_of_par(key: str, value: Any = None) -> str:
    """Returns the remedy for such a key or argument, with its value if known; empty if it means something else."""
    if key.lower() not in WORDS:
        return ""
    shown = f"{key}={given(value)}" if value is not None else repr(key)
    return (
        "the number of tasks of a component is `par` of its spec, such as MyBolt.spec(inputs=[...], par=4), or the "
        f"attribute `par` of its class; how many Spark tasks read at once is option 'minPartitions'. Given: {shown}"
    )
