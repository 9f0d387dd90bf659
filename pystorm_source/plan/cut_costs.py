"""What each cut of a topology costs, in words."""

from collections.abc import Iterator, Sequence

from pystorm_source.plan.key_states import needs_time
from pystorm_source.plan.stages import Stage


def cut_costs(stages: Sequence[Stage]) -> Iterator[str]:
    """Yields a line for each stage behind a cut. The benchmarks ``stages`` and ``keyed`` gave the figures: an order of
    magnitude."""
    for number, stage in enumerate(stages[1:], start=1):
        yield f"stage {number}: {'; '.join(_costs(stage, stays=number > 1 and stage.stays))}"


def _costs(stage: Stage, stays: bool) -> Iterator[str]:
    placings = {entry.placing for entry in stage.entries}
    if stays:
        yield "no shuffle, rows stay in their Spark task"
    else:
        tasks = "all into one Spark task" if placings == {"global"} else "into a Spark task for each partition"
        yield f"a row costs about 1 us in Spark's shuffle, {tasks}"
    for entry in stage.entries:
        if entry.placing == "all":
            yield f"each row of {entry.origin} goes to every task"
    if stage.stateful is not None:
        yield "a key costs about 0.1 ms in each micro-batch that has it, for a get and a put in Spark's state store"
        if needs_time(stage.stateful):
            yield "Spark runs micro-batches without rows, too"
