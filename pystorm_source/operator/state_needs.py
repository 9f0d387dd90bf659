"""What Spark needs to keep the states of a StatefulBolt: packages of Python, and RocksDB as its store."""

import importlib
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyspark

from pystorm_source.errors import OptionError, said
from pystorm_source.errors.packages import requirements
from pystorm_source.spark.versions import may_stream, states_take_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pystorm.operator")

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"


def provide_states(df: "DataFrame") -> None:
    """Sets the session's state store for a stream, if no one has. Raises OptionError with all that is missing."""
    faults = list(_packages())
    given = [f"pyspark {pyspark.__version__} with {fault}" for fault, _ in faults]
    remedies = list(dict.fromkeys(remedy for _, remedy in faults))
    code: Any = "PYSTORM_PACKAGE_MISSING"
    if remedies:
        remedies = [f"pip install {' '.join(remedies)}, here and where Spark's tasks run"]
    if may_stream(df) and (provider := _other_provider(df.sparkSession)) is not None:
        code = code if faults else "PYSTORM_INVALID_OPTION"
        remedies.append(f"spark.conf.set({PROVIDER!r}, {ROCKS_DB!r}) before the query starts")
        given.append(f"{PROVIDER}={provider!r}")
    if remedies:
        raise OptionError(
            "Spark keeps the state of a StatefulBolt in RocksDB alone, and talks to it by protobuf: "
            f"{'; and '.join(remedies)}. Given: {', '.join(given)}",
            code=code,
        )


def _packages() -> Iterable[tuple[str, str]]:
    """Yields what is wrong with a package, and what pip must install."""
    if not _is_there("google.protobuf"):
        yield "no protobuf", requirements("state")
    else:
        try:
            importlib.import_module(_MESSAGES)
        except Exception as error:  # protobuf refuses code of a newer version
            yield f"a protobuf that does not fit: {said(error)}", f"--upgrade {requirements('state')}"
    if not states_take_rows() and not _is_there("pandas"):
        yield "no pandas", "pandas"


def _is_there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _other_provider(spark: Any) -> str | None:
    """The session's provider if the user has set another one. If no provider is set, it is RocksDB from now on."""
    found: str = spark.conf.get(PROVIDER) or ""
    if "RocksDB" in found:
        return None
    if spark.conf.get(PROVIDER, ""):  # with our default, Spark does not return its own
        return found
    try:
        spark.conf.set(PROVIDER, ROCKS_DB)
    except Exception:  # such as in a query function of a pipeline
        return found
    logger.info(
        "this session keeps states in RocksDB now, as a StatefulBolt needs it: set %s=%s. Queries with states that "
        "start later without a checkpoint use it, too; those with a checkpoint keep theirs.",
        PROVIDER,
        ROCKS_DB,
    )
    return None
