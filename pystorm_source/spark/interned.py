"""Frozen data that goes into every task of a query: unpickled once per process, not once per task.

Spark sends the same bytes with each task, and a Python worker runs thousands of tasks. Equal bytes give the same object
here, so its derived values (``cached_property``) are computed once as well.
"""

import functools
import os
import pickle
import sys
from typing import Any

from pyspark import cloudpickle

from pystorm_source.errors import TopologyError, UsageError, said
from pystorm_source.errors.user_frames import trim, users_line
from pystorm_source.plan import Plan
from pystorm_source.plan.unpicklable import check_picklable
from pystorm_source.spark.cached_functions import travel_by_value

MOST_KEPT = 32
"""Objects of a process. Too few: queries that take turns in one process unpickle for each task. Too many: the classes
of notebook cells that were run again stay in memory."""

travel_by_value()


def pickled(value: Any) -> bytes:
    """``value`` for ``interned``. Classes of a notebook or script go along by value. Raises the errors of pickling."""
    made: bytes = cloudpickle.dumps(value)
    return made


def pickled_with(plan: Plan, value: Any) -> bytes:
    """Like ``pickled``, for a value that contains the plan. Raises TopologyError for a component that does not pickle:
    Spark would name only the type."""
    try:
        return pickled(value)
    except Exception:
        check_picklable(plan, pickled)
        raise


@functools.lru_cache(maxsize=MOST_KEPT)
def interned(made: bytes) -> Any:
    """The object that ``pickled`` was given: the same one for equal bytes. It must not be changed.

    Raises UsageError if a module of the user's cannot be imported here, or lacks what it has on the driver.
    """
    try:
        return pickle.loads(made)
    except ImportError as error:
        raise UsageError(
            f"{error.name or 'a module'!r} can be imported where the query was started, and not by this process of "
            f"Spark's, {sys.executable} on {os.uname().nodename} ({said(error)}{_imported_in(error)}): install it on "
            "every executor, put its folder on PYTHONPATH before Spark starts, or ship it with spark-submit --py-files "
            "or --archives (docs/DEPLOY.md). "
            f"Given: {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from trim(error)
    except AttributeError as error:
        raise UsageError(
            f"this process, {sys.executable} on {os.uname().nodename}, has other code than the one that planned the "
            f"query ({said(error)}): give all the same modules, and restart the application. Given: "
            f"{getattr(error, 'name', None)!r}",
            code="PYSTORM_CODE_DIFFERS",
        ) from trim(error)


def _imported_in(error: ImportError) -> str:
    line = users_line(error)
    return f"; imported in {line}" if line else ""


def refuse_tables_of_main(plan: Plan) -> None:
    # Workaround: cloudpickle (3.1) loses the fields of a msgspec.Struct that it has to take along by value.
    for component in plan.components:
        table = getattr(component.cls, "Options", None)
        if table is not None and table.__module__ == "__main__":
            raise TopologyError(
                f"the options table of {component.name!r} is defined in a notebook or script and cannot travel to "
                "Spark's processes: put it into a module that they can import, or read plain keys from `conf` and set "
                f"them by config={{...}}. Given: {table.__qualname__}",
                code="PYSTORM_CANNOT_PICKLE",
            )
