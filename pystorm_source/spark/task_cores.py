"""Whether Spark counts as many cores for a task as its bolts' processes can use."""

import logging
import os

from pyspark import TaskContext

from pystorm_source.plan.plan import Plan

logger = logging.getLogger("pystorm.worker")

_said: set[str] = set()


def advise_of_cores(plan: Plan) -> None:
    """Warns, once for each topology in a process, if the task at work has fewer cores than processes of bolts. If each
    task has its own process (spark.python.worker.reuse=false), only the first task of a query warns."""
    placed = {each.name: min(each.processes, len(each.tasks)) for each in plan.components if each.processes}
    if not placed or plan.name in _said:
        return
    task = TaskContext.get()
    processes = sum(placed.values())
    if task is None or processes <= task.cpus():
        return
    _said.add(plan.name)
    if "SPARK_REUSE_WORKER" not in os.environ and not _is_first(task):
        return
    shown = ", ".join(f"{name!r} has {count}" for name, count in placed.items())
    logger.warning(
        "bolts of topology %r run in %d processes (%s), and Spark counts %d of its cores for a task, so tasks "
        "compete for cores: set spark.task.cpus=%d when the application starts, or lower `processes`",
        plan.name,
        processes,
        shown,
        task.cpus(),
        processes,
    )


def _is_first(task: TaskContext) -> bool:
    batch = task.getLocalProperty("streaming.sql.batchId")
    return task.partitionId() == 0 and task.attemptNumber() == 0 and batch in (None, "0")
