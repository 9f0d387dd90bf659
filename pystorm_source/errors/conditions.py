"""The conditions that raise an error of this package: a stable code for each, with its cause and its remedy.

A code precedes the message, ``[PYSTORM_UNKNOWN_OPTION] unknown option …``, and is in the error's attribute ``code``.
Codes never change: if a new condition needs another remedy, it gets a new code. ``docs/ERRORS.md`` is printed from this
table.
"""

from typing import Literal, NamedTuple

Code = Literal[
    # the entire package
    "PYSTORM_ERROR",
    "PYSTORM_INTERNAL_ERROR",
    "PYSTORM_INVALID_ARGUMENT",
    "PYSTORM_NOT_SUPPORTED",
    # options
    "PYSTORM_INVALID_OPTION",
    "PYSTORM_UNKNOWN_OPTION",
    "PYSTORM_MISSING_OPTION",
    "PYSTORM_OPTIONS_CONFLICT",
    "PYSTORM_NOT_WRITABLE",
    "PYSTORM_SPOUT_WITHOUT_OFFSETS",
    # modules and versions
    "PYSTORM_NAME_NOT_FOUND",
    "PYSTORM_IMPORT_FAILED",
    "PYSTORM_PACKAGE_MISSING",
    "PYSTORM_PACKAGE_IN_THE_WAY",
    "PYSTORM_CODE_DIFFERS",
    "PYSTORM_COMPILED_FOR_ANOTHER_VERSION",
    "PYSTORM_CANNOT_PICKLE",
    # topologies
    "PYSTORM_INVALID_TOPOLOGY",
    "PYSTORM_INVALID_COMPONENT",
    "PYSTORM_SPOUTS_NEVER_MEET",
    "PYSTORM_CANNOT_BE_CUT",
    "PYSTORM_CONTRACT_BROKEN",
    "PYSTORM_TOPOLOGY_DOES_NOT_END",
    # streams and types
    "PYSTORM_SCHEMA_MISMATCH",
    "PYSTORM_INVALID_TYPE",
    "PYSTORM_MALFORMED_RECORD",
    # checkpoints and the journal
    "PYSTORM_CHECKPOINT_DAMAGED",
    "PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
    "PYSTORM_JOURNAL_UNREACHABLE",
    "PYSTORM_ATTEMPT_SUPERSEDED",
    "PYSTORM_PERMITS_UNREACHABLE",
    "PYSTORM_DATA_LOST",
    # map states
    "PYSTORM_BATCH_BEHIND_STATE",
    "PYSTORM_STATE_OF_ANOTHER_KIND",
    "PYSTORM_STORE_UNREACHABLE",
    # other systems
    "PYSTORM_EXTERNAL_FAILURE",
    "PYSTORM_NO_PROCESSES",
    "PYSTORM_FILE_UNREADABLE",
    "PYSTORM_KAFKA_UNREACHABLE",
    "PYSTORM_KAFKA_REFUSES",
    "PYSTORM_KAFKA_TOPIC_NOT_FOUND",
    # while a topology runs
    "PYSTORM_TUPLE_FAILED",
    "PYSTORM_TUPLE_TIMED_OUT",
    "PYSTORM_SPOUT_UNAVAILABLE",
    # what a query did
    "PYSTORM_NO_PROGRESS",
    "PYSTORM_NO_STACKS",
    # emits
    "PYSTORM_ROWS_RETURNED",
    "PYSTORM_UNKNOWN_STREAM",
    "PYSTORM_UNKNOWN_FIELD",
    "PYSTORM_EMIT_NOT_A_LIST",
    "PYSTORM_WRONG_NUMBER_OF_FIELDS",
    "PYSTORM_VALUE_DOES_NOT_FIT",
    "PYSTORM_OFFSET_MISSING",
    "PYSTORM_OFFSET_OUT_OF_RANGE",
    "PYSTORM_INVALID_ANCHOR",
    "PYSTORM_ANCHOR_CLOSED",
    "PYSTORM_EMIT_OUTSIDE_OF_RUN",
    "PYSTORM_INVALID_DIRECT_TASK",
    "PYSTORM_VALUE_WITHOUT_HASH",
    "PYSTORM_MESSAGE_ID_MISSING",
    "PYSTORM_TASK_IDS_UNKNOWN",
    "PYSTORM_INVALID_RETURN_VALUE",
]


class Condition(NamedTuple):
    """``error``: the class that has the code, or the base of such classes; a Python class for what ``emit`` raises.
    ``cause`` and ``remedy``: a sentence each; the message itself names the values."""

    error: str
    cause: str
    remedy: str


CONDITIONS: dict[Code, Condition] = {
    "PYSTORM_ERROR": Condition(
        "PystormError",
        "Your own error class derives from `PystormError` or `UsageError`, and has no code.",
        "Read the message. If another system causes the error, derive the class from `WorldError`.",
    ),
    "PYSTORM_INTERNAL_ERROR": Condition(
        "InternalError",
        "A bug in this package.",
        "Report the complete message and the traceback.",
    ),
    "PYSTORM_INVALID_ARGUMENT": Condition(
        "UsageError",
        "An argument has the wrong type or value, or names an unknown stream, component or store.",
        "Give what the message asks for, such as a list of names, a spec, or a class instead of an object.",
    ),
    "PYSTORM_NOT_SUPPORTED": Condition(
        "UsageError",
        "The called part of streamparse does not exist here, or needs Storm or Java.",
        "Use what the message names instead (`docs/MIGRATING.md`).",
    ),
    "PYSTORM_INVALID_OPTION": Condition(
        "OptionError",
        "An option, or the file that the option names, has the wrong form or type, is out of bounds, or "
        "names a file, partition or offset that does not exist.",
        "Correct the value (`docs/OPTIONS.md`). Paths must be the same on driver and executors.",
    ),
    "PYSTORM_UNKNOWN_OPTION": Condition(
        "OptionError",
        "The key is misspelled, or belongs to a spout that the topology does not have.",
        "Use the key that the message proposes. Put your own key into `config` or `Topology.config`.",
    ),
    "PYSTORM_MISSING_OPTION": Condition(
        "OptionError",
        "A needed option is missing, or no option says which of several streams to read.",
        "Set the option that the message names.",
    ),
    "PYSTORM_OPTIONS_CONFLICT": Condition(
        "OptionError",
        "Two options exclude each other, or an option is only for `spark.read` or for Kafka's Java client.",
        "Remove or change the option that the message names (`docs/KAFKA.md`).",
    ),
    "PYSTORM_NOT_WRITABLE": Condition(
        "OptionError",
        "A file or folder that an option names cannot be written.",
        "Name an existing folder that the process may write to. Log folders must exist on every worker.",
    ),
    "PYSTORM_SPOUT_WITHOUT_OFFSETS": Condition(
        "OptionError",
        "A spout has no offsets, so Spark could not replay its tuples after a failed task.",
        "Set `journal.path` or write a `PartitionedSpout`. Unless the spout is a `CursorSpout` or `QueueSpout`, "
        "you can also accept lost tuples: `delivery.guarantee=best-effort`.",
    ),
    "PYSTORM_NAME_NOT_FOUND": Condition(
        "OptionError",
        "An option names a module, topology, class or function that does not exist.",
        "Correct the name, or install the module on driver and executors. In a notebook, pass the class: "
        "`read_stream(spark, Words)`.",
    ),
    "PYSTORM_IMPORT_FAILED": Condition(
        "OptionError",
        "A module that an option names raises an exception while it is imported.",
        "Correct the line that the message names.",
    ),
    "PYSTORM_PACKAGE_MISSING": Condition(
        "PystormError",
        "A Python package or Java is not installed, or an executor lacks a module that the driver has.",
        "Install what is missing on driver and executors (`docs/DEPLOY.md`). If there are several Javas, set "
        "`JAVA_HOME`.",
    ),
    "PYSTORM_PACKAGE_IN_THE_WAY": Condition(
        "UsageError",
        "The real streamparse or pystorm is installed, so `compat.install()` cannot use its name.",
        "Uninstall the real package, or import from `pystorm_source` without `install()`.",
    ),
    "PYSTORM_CODE_DIFFERS": Condition(
        "UsageError",
        "Driver and executor have different code of a topology, or different versions of pystorm-source.",
        "Install the same code and version on both, and restart the application.",
    ),
    "PYSTORM_COMPILED_FOR_ANOTHER_VERSION": Condition(
        "ImportError",
        "A module of compiled components was built for another version of pystorm-source.",
        "Build the module again with the installed version.",
    ),
    "PYSTORM_CANNOT_PICKLE": Condition(
        "TopologyError",
        "A part of a topology cannot be pickled, so the topology cannot travel to Spark's tasks.",
        "Open connections, files and locks in `initialize()`, which runs in the task.",
    ),
    "PYSTORM_INVALID_TOPOLOGY": Condition(
        "UsageError",
        "The topology cannot run as declared: a grouping, the keys of a join, a stream, or the output is wrong.",
        "Change the declaration as the message says.",
    ),
    "PYSTORM_INVALID_COMPONENT": Condition(
        "UsageError",
        "A component lacks a method, has a method of the wrong kind, or returned a wrong value, such as from "
        "`snapshot()` or `split()`.",
        "Define the method as `def`, or as `async def` in an `AsyncBolt`, and return what the message describes.",
    ),
    "PYSTORM_SPOUTS_NEVER_MEET": Condition(
        "TopologyError",
        "A bolt groups tuples of several spouts together, but a Spark task reads one spout.",
        "Read with `scope='cluster'`, join in Spark, or set `topology.spouts.independent=true`.",
    ),
    "PYSTORM_CANNOT_BE_CUT": Condition(
        "TopologyError",
        "`scope='cluster'` puts Spark's shuffles into a topology, and something in the topology cannot work "
        "across a shuffle.",
        "Change what the message names, or use `scope='task'` (`docs/STAGES.md`).",
    ),
    "PYSTORM_CONTRACT_BROKEN": Condition(
        "ContractBroken",
        "`verify_spout` or `verify_bolt` found that a component breaks a law of the engine.",
        "Change the component as the message says. The error's attribute `law` names it.",
    ),
    "PYSTORM_TOPOLOGY_DOES_NOT_END": Condition(
        "TopologyTimeoutError",
        "`run_topology` exceeded its `timeout`: a spout, a cycle or a call did not end.",
        "Correct the component that the message names, or raise `timeout`.",
    ),
    "PYSTORM_SCHEMA_MISMATCH": Condition(
        "UsageError",
        "The requested columns do not fit the topology's streams, or a spout's fields do not fit its format.",
        "Request declared columns and types, and cast in Spark; or change `outputs` or the fields.",
    ),
    "PYSTORM_INVALID_TYPE": Condition(
        "UsageError",
        "A field of a stream that leaves the topology as rows has no type, or a type that rows cannot have.",
        "Declare Spark SQL's types, `outputs = ['word string', 'counts array<int>']`, or call `.schema(...)` "
        "on the reader.",
    ),
    "PYSTORM_MALFORMED_RECORD": Condition(
        "SchemaError",
        "A line of a file or a Kafka record does not fit its format or the declared types.",
        "Correct the data, skip the record with the option that the message names, or make it a dead letter.",
    ),
    "PYSTORM_CHECKPOINT_DAMAGED": Condition(
        "CheckpointError",
        "An offset in the checkpoint was damaged or edited; or the checkpoint is an old copy, and the "
        "journal has deleted its next tuples.",
        "Restore a newer copy, or use a new `checkpointLocation` and a new journal (`docs/TROUBLESHOOTING.md`).",
    ),
    "PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY": Condition(
        "PystormError",
        "The checkpoint or journal belongs to another source, other spouts or another version; or `par` or "
        "fields changed before a micro-batch finished.",
        "Finish the last micro-batch with the old topology or version, restore the spouts' names, or use a "
        "new `checkpointLocation`.",
    ),
    "PYSTORM_JOURNAL_UNREACHABLE": Condition(
        "WorldError",
        "The journal's folder cannot be read or written.",
        "Let the driver and every executor read, write, list and delete in `journal.path`.",
    ),
    "PYSTORM_ATTEMPT_SUPERSEDED": Condition(
        "WorldError",
        "Another attempt of the same Spark task was faster.",
        "Do nothing: Spark ignores this attempt or tries again.",
    ),
    "PYSTORM_PERMITS_UNREACHABLE": Condition(
        "WorldError",
        "A task cannot reach the driver or Redis that issues permits for `topology.rate.limit`.",
        "Make the driver reachable with `feedback.host` and `feedback.port`, or set `topology.rate.limit.redis` "
        "or `topology.rate.limit.tasks`.",
    ),
    "PYSTORM_DATA_LOST": Condition(
        "DataLossError",
        "Data between two offsets is gone: a file of the source or journal was truncated, damaged or "
        "deleted, or records expired unread.",
        "Restore a copy, or continue without the data: `failOnDataLoss=false`. Keep data for longer than the "
        "query lags.",
    ),
    "PYSTORM_BATCH_BEHIND_STATE": Condition(
        "CheckpointError",
        "A micro-batch would update a map state that a later micro-batch has written.",
        "For a new checkpoint, give the state a new name, or continue with the old checkpoint. Only one "
        "query may write a state. A late attempt of a finished micro-batch needs no remedy.",
    ),
    "PYSTORM_STATE_OF_ANOTHER_KIND": Condition(
        "UsageError",
        "The store has content that another kind of map state, another type of values, or another program wrote.",
        "Give the state a unique name, or open it as it was written.",
    ),
    "PYSTORM_STORE_UNREACHABLE": Condition(
        "WorldError",
        "The database of a map state does not answer, or refuses a statement.",
        "Check the database and its permissions. Then start the query again: it repeats the micro-batch.",
    ),
    "PYSTORM_EXTERNAL_FAILURE": Condition(
        "WorldError",
        "Your component raised `WorldError`, or a server refused the request of a ready-made spout.",
        "Read the message. A retry may succeed.",
    ),
    "PYSTORM_NO_PROCESSES": Condition(
        "WorldError",
        "A Spark task lacks memory, open files or process ids for a bolt's `processes=`.",
        "Raise the limit that the message names, or lower `processes` (`docs/PROCESSES.md`).",
    ),
    "PYSTORM_FILE_UNREADABLE": Condition(
        "WorldError",
        "A file or directory cannot be opened or unpacked, or is not mounted.",
        "Mount the directory at the same path on every executor, allow reading, or repair or remove the file.",
    ),
    "PYSTORM_KAFKA_UNREACHABLE": Condition(
        "WorldError",
        "Kafka's brokers, a partition's leader or the schema registry do not answer, or the registry gives no schema.",
        "Check that driver and executors reach `kafka.bootstrap.servers` and `schema.registry.url`, and "
        "check credentials such as `schema.registry.basic.auth.user.info`.",
    ),
    "PYSTORM_KAFKA_REFUSES": Condition(
        "WorldError",
        "Kafka refuses the client, the client distrusts the broker, or `kafka.oauth_cb` gave no token.",
        "Check the options `kafka.security.*`, `kafka.sasl.*` and `kafka.ssl.*` on driver and executors "
        "(`docs/KAFKA.md`).",
    ),
    "PYSTORM_KAFKA_TOPIC_NOT_FOUND": Condition(
        "WorldError",
        "Kafka does not have a topic or partition that an option names.",
        "Create it, or remove it from the option.",
    ),
    "PYSTORM_TUPLE_FAILED": Condition(
        "TupleFailed",
        "A component raised an exception, in `process()` or another method, or failed a tuple.",
        "Correct the component (its traceback is the cause), or allow retries and dead letters.",
    ),
    "PYSTORM_TUPLE_TIMED_OUT": Condition(
        "TupleFailed",
        "A tuple was neither acked nor failed within `topology.message.timeout.secs`.",
        "Ack every tuple, speed up the slow component, or raise the time-out.",
    ),
    "PYSTORM_SPOUT_UNAVAILABLE": Condition(
        "TupleFailed",
        "A spout raised `RetryLater`, or exceptions that `topology.retry.on` retries, for `spout.unavailable.timeout`.",
        "Check the source, its quota and credentials, and that driver and executors reach it. Then start the query "
        "again: with a checkpoint, it continues where it was. For longer outages, raise `spout.unavailable.timeout`.",
    ),
    "PYSTORM_NO_PROGRESS": Condition(
        "UsageError",
        "The query has no source, sink or counted operator of this package; or, on Spark 4.0 and 4.1, its record "
        "is on another machine.",
        "Call `progress` on the driver's machine, for a query with `format('pystorm')` or with a counted "
        "operator: `apply(df, Topology, counts='name')`.",
    ),
    "PYSTORM_NO_STACKS": Condition(
        "UsageError",
        "The tasks cannot answer: the driver runs on another machine or as another user, no task has begun, the "
        "query has ended, or `feedback=off` is set.",
        "Run `pystorm-source ui --stacks` on the driver's machine as its user, while a micro-batch runs.",
    ),
    "PYSTORM_ROWS_RETURNED": Condition(
        "TypeError",
        "A call returned rows instead of emitting them (on Spark, one warning per task), or did not await a "
        "coroutine (on Spark, an error).",
        "Call `self.emit([...])` for each row. Await coroutines in an `AsyncBolt`.",
    ),
    "PYSTORM_UNKNOWN_STREAM": Condition(
        "ValueError",
        "A component emits to a stream that it does not declare.",
        "Declare the stream in `outputs`: `Stream(['field type'], name='stream')`.",
    ),
    "PYSTORM_UNKNOWN_FIELD": Condition(
        "ValueError",
        "`tups.column(field)` in `process_many` names a field that a tuple's stream does not have.",
        "Name a field of that stream, or its position, from 0.",
    ),
    "PYSTORM_EMIT_NOT_A_LIST": Condition(
        "TypeError",
        "A component emits neither a list nor a tuple.",
        "Emit one value for each field: `emit([value])`.",
    ),
    "PYSTORM_WRONG_NUMBER_OF_FIELDS": Condition(
        "ValueError",
        "An emit does not have one value per field, or the columns or `tup_ids` of an `emit_many` differ in length.",
        "Emit a value for each field and row, `None` for unknown ones.",
    ),
    "PYSTORM_VALUE_DOES_NOT_FIT": Condition(
        "RowError or TypeError",
        "A value does not fit its column's declared type, or a test that copies values cannot copy it.",
        "Emit values of the types in `outputs`, or declare other types.",
    ),
    "PYSTORM_OFFSET_MISSING": Condition(
        "ValueError",
        "A `PartitionedSpout` emits without the offset of the tuple.",
        "Give the offset, an `int`: `emit(values, tup_id=offset)`.",
    ),
    "PYSTORM_OFFSET_OUT_OF_RANGE": Condition(
        "ValueError",
        "A `PartitionedSpout` emits an offset outside the range that it was asked to read.",
        "Return `False` from `next_tuple()` at the end of the range.",
    ),
    "PYSTORM_INVALID_ANCHOR": Condition(
        "ValueError or TypeError",
        "The anchors of an emit are not a list of tuples, or a component acks or fails something other than a tuple.",
        "Call `emit(values, anchors=[tup])`, before you ack or fail the tuple.",
    ),
    "PYSTORM_ANCHOR_CLOSED": Condition(
        "ValueError",
        "An emit is anchored to a tuple that was already acked, failed or given up; or an `AsyncBolt` does "
        "not await a task that emits.",
        "Emit before the ack, await what an `AsyncBolt` starts, or emit with `anchors=[]`.",
    ),
    "PYSTORM_EMIT_OUTSIDE_OF_RUN": Condition(
        "RuntimeError",
        "A component emits, acks or fails before `initialize()`, after `cleanup()`, or between two micro-batches.",
        "Emit while the component is called. Threads of a bolt must hand results to its next call.",
    ),
    "PYSTORM_INVALID_DIRECT_TASK": Condition(
        "ValueError or TypeError",
        "An emit names a task on a stream that is not direct, names no task on a direct stream, or names "
        "something other than a task id.",
        "Declare `Stream(..., direct=True)`, and set `direct_task` to an id in `context['task->component']`.",
    ),
    "PYSTORM_VALUE_WITHOUT_HASH": Condition(
        "TypeError",
        "A fields grouping selects a value of a type whose hash differs between processes.",
        "Group by text, numbers, bytes, dates, or lists, dicts and dataclasses of these.",
    ),
    "PYSTORM_MESSAGE_ID_MISSING": Condition(
        "ValueError",
        "A `ReliableSpout` emits without the id for its acks and fails.",
        "Call `emit(values, tup_id=...)` with your id.",
    ),
    "PYSTORM_TASK_IDS_UNKNOWN": Condition(
        "ValueError",
        "An emit asks for task ids that are not known yet: a journal or earlier requests delay the choice.",
        "Remove `need_task_ids`, `journal.path` or `topology.async.ordered=true`.",
    ),
    "PYSTORM_INVALID_RETURN_VALUE": Condition(
        "ValueError or TypeError",
        "A component's method, or the `choose_tasks()` of a custom grouping, returned a wrong value.",
        "Return what the message asks for.",
    ),
}
"""In the order of ``Code``, as on the page."""
