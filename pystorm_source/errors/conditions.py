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
        "Your own error class derives from `PystormError` or `UsageError` and names no code.",
        "Read the message; or derive the class from `WorldError`, if something outside is the cause.",
    ),
    "PYSTORM_INTERNAL_ERROR": Condition(
        "InternalError",
        "A bug in this package.",
        "Report it with the whole message and the traceback.",
    ),
    "PYSTORM_INVALID_ARGUMENT": Condition(
        "UsageError",
        "An argument of a call or a declaration has another type than it must have (`ArgumentTypeError`), a value that "
        "makes no sense, or names a stream, component or store that is not there.",
        "Give what the message asks for: often a list of names, a spec, or a topology's class instead of an object of "
        "it; look at the order of the arguments.",
    ),
    "PYSTORM_NOT_SUPPORTED": Condition(
        "UsageError",
        "A name of streamparse's that this package does not have, or that can be imported and needs Storm or Java.",
        "Take what the message names instead (`docs/MIGRATING.md`).",
    ),
    "PYSTORM_INVALID_OPTION": Condition(
        "OptionError",
        "The value of an option, offsets among them, or what the file that it names holds, has the wrong form or type, "
        "is out of bounds, or names a file, folder, partition or offset that is not there.",
        "Give a value as the message describes it; `docs/OPTIONS.md` has type, bounds and default of each option. "
        "Driver and executors need the same path; a glob may match later.",
    ),
    "PYSTORM_UNKNOWN_OPTION": Condition(
        "OptionError",
        "No table has an option of that key: it is misspelled, or belongs to a spout that the topology does not have.",
        "Take the key that the message proposes; put your own keys into option `config` or `Topology.config`.",
    ),
    "PYSTORM_MISSING_OPTION": Condition(
        "OptionError",
        "An option that has no default is not given, or the topology has several streams and no option says which is "
        "read.",
        "Set the option that the message names.",
    ),
    "PYSTORM_OPTIONS_CONFLICT": Condition(
        "OptionError",
        "Two options do not go together; an option is given that only another value of a second one allows; or it is "
        "for another kind of read: for `spark.read` and not a stream, or for Kafka's Java client, while this source "
        "reads by librdkafka.",
        "Leave the option out, or change the one that the message names (`docs/KAFKA.md`).",
    ),
    "PYSTORM_NOT_WRITABLE": Condition(
        "OptionError",
        "A file or folder that an option names cannot be written.",
        "Name a folder that is there and where the process may write; for logs, on every worker.",
    ),
    "PYSTORM_SPOUT_WITHOUT_OFFSETS": Condition(
        "OptionError",
        "A spout has no offsets, and Spark could not replay its tuples after a failed task.",
        "Set option `journal.path`, write a `PartitionedSpout`, or, if it is neither a `CursorSpout` nor a "
        "`QueueSpout`, accept the loss: `delivery.guarantee=best-effort`.",
    ),
    "PYSTORM_NAME_NOT_FOUND": Condition(
        "OptionError",
        "There is no module of the name that an option gives, or it has no topology, class or function of that name.",
        "Correct the name, or take one that the message lists; install the module where the driver and the executors "
        "run; of a notebook's class give the class itself: `read_stream(spark, Words)`.",
    ),
    "PYSTORM_IMPORT_FAILED": Condition(
        "OptionError",
        "A module that an option names raises an exception while it is imported.",
        "Mend the line of it that the message names.",
    ),
    "PYSTORM_PACKAGE_MISSING": Condition(
        "PystormError",
        "A Python package or a Java that is needed is not installed, or an executor does not have a module that the "
        "driver has.",
        "Install it on the driver and on every executor, or ship it with `--py-files` or `--archives` "
        "(`docs/DEPLOY.md`); set `JAVA_HOME` if there are several.",
    ),
    "PYSTORM_PACKAGE_IN_THE_WAY": Condition(
        "UsageError",
        "The real streamparse or pystorm is installed, and `compat.install()` would give its name to this package.",
        "Uninstall it, or import from `pystorm_source` and leave `install()` out.",
    ),
    "PYSTORM_CODE_DIFFERS": Condition(
        "UsageError",
        "Driver and executor have different code of the same topology, or different versions of pystorm-source.",
        "Install the same version on both, and restart the application, so that all processes load the same code.",
    ),
    "PYSTORM_COMPILED_FOR_ANOTHER_VERSION": Condition(
        "ImportError",
        "A module of compiled components was built against another version of pystorm-source than the installed one.",
        "Build it again with the installed version (`pip install --no-build-isolation --no-deps --force-reinstall .`).",
    ),
    "PYSTORM_CANNOT_PICKLE": Condition(
        "TopologyError",
        "Something that belongs to a topology cannot be pickled, hence cannot travel to Spark's tasks.",
        "Open connections, files and locks in `initialize()`, which runs in the task.",
    ),
    "PYSTORM_INVALID_TOPOLOGY": Condition(
        "UsageError",
        "The topology cannot run as it is declared: a grouping, a join's keys, a stream, or what leaves it.",
        "Change the declaration as the message says.",
    ),
    "PYSTORM_INVALID_COMPONENT": Condition(
        "UsageError",
        "A spout or bolt lacks a method, or has one of the wrong kind; a method was called that a subclass has to "
        "define; or one, such as `snapshot()` or `split()`, returned something that makes no sense.",
        "Define the method that the message names, as plain `def`, or `async def` in an `AsyncBolt`, and return what "
        "the message describes (`docs/WRITING_A_SPOUT.md`).",
    ),
    "PYSTORM_SPOUTS_NEVER_MEET": Condition(
        "TopologyError",
        "A bolt groups tuples of several spouts together, but a Spark task reads one spout.",
        "Read it with `scope='cluster'`, make a topology of each spout and join in Spark, or set "
        "`topology.spouts.independent=true`.",
    ),
    "PYSTORM_CANNOT_BE_CUT": Condition(
        "TopologyError",
        "`scope='cluster'` cuts a topology where a grouping must hold across tasks, and something in it has no meaning "
        "across a cut.",
        "Change what the message names, or use `scope='task'` (`docs/STAGES.md`).",
    ),
    "PYSTORM_CONTRACT_BROKEN": Condition(
        "ContractBroken",
        "A spout or bolt breaks a law that the engine relies on; `verify_spout` or `verify_bolt` found it.",
        "Change the component as the message says; its attribute `law` names the law.",
    ),
    "PYSTORM_TOPOLOGY_DOES_NOT_END": Condition(
        "TopologyTimeoutError",
        "`run_topology` took longer than its `timeout`: a spout goes on, a cycle, or a call.",
        "Mend what the message names as running; or give a longer `timeout`.",
    ),
    "PYSTORM_SCHEMA_MISMATCH": Condition(
        "UsageError",
        "The columns that are asked for do not fit those that the topology's streams declare, or a spout's fields do "
        "not fit its format.",
        "Ask for declared columns and types, and cast in Spark; or change `outputs` or the fields.",
    ),
    "PYSTORM_INVALID_TYPE": Condition(
        "UsageError",
        "A field of a stream that becomes rows has no type, or one that cannot leave a topology.",
        "Write it as Spark's SQL does: `outputs = ['word string', 'counts array<int>']`, or call `.schema(...)` on the "
        "reader.",
    ),
    "PYSTORM_MALFORMED_RECORD": Condition(
        "SchemaError",
        "A line of a file or a record of Kafka cannot be read as its format and the declared types say.",
        "Correct the data, skip it by the option that the message names, or make it a dead letter.",
    ),
    "PYSTORM_CHECKPOINT_DAMAGED": Condition(
        "CheckpointError",
        "An offset in the checkpoint was damaged or edited, or the checkpoint is an old copy: it ends before tuples "
        "that the journal has deleted because they were finished.",
        "Bring the files back from a newer copy, or start again with another `checkpointLocation` and, if there is "
        "one, another journal (`docs/TROUBLESHOOTING.md`).",
    ),
    "PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY": Condition(
        "PystormError",
        "The checkpoint or the journal was written by another source, for other spouts, `par` or fields, with a "
        "micro-batch that is not finished, or by a version of pystorm-source whose offsets this one does not read.",
        "Run the old topology, or the old version, until its last micro-batch is done; give the spouts their old names "
        "back; or give the query a new `checkpointLocation`.",
    ),
    "PYSTORM_JOURNAL_UNREACHABLE": Condition(
        "WorldError",
        "The journal's folder cannot be read or written.",
        "See that the driver and every executor may read, write, list and delete in `journal.path`.",
    ),
    "PYSTORM_ATTEMPT_SUPERSEDED": Condition(
        "WorldError",
        "Another attempt of the same Spark task was quicker.",
        "Nothing: Spark takes no notice of this one, or tries again.",
    ),
    "PYSTORM_PERMITS_UNREACHABLE": Condition(
        "WorldError",
        "A bolt takes permits of `topology.rate.limit`, and its task cannot reach the process on the driver, or the "
        "Redis, that gives them.",
        "Open the way by `feedback.host` and `feedback.port`, let a Redis give them (`topology.rate.limit.redis`), or "
        "give each task a fixed share by `topology.rate.limit.tasks`.",
    ),
    "PYSTORM_DATA_LOST": Condition(
        "DataLossError",
        "Data between two offsets is gone: a file was truncated, damaged or deleted, of the source or of the journal, "
        "or records expired before they were read.",
        "Bring it back from a copy; keep data for longer than the query lags; `failOnDataLoss=false` goes on without "
        "it.",
    ),
    "PYSTORM_BATCH_BEHIND_STATE": Condition(
        "CheckpointError",
        "A micro-batch wants to update a map state that a later micro-batch has written.",
        "Give the state a new name if the checkpoint is new, or go on with the old checkpoint. One query writes it. A "
        "late attempt needs no remedy if another one has finished its micro-batch.",
    ),
    "PYSTORM_STATE_OF_ANOTHER_KIND": Condition(
        "UsageError",
        "What the store has was written by another kind of map state, with another type of values, or by others.",
        "Give the state a name that no other has, or open it the way it was written.",
    ),
    "PYSTORM_STORE_UNREACHABLE": Condition(
        "WorldError",
        "The database of a map state does not answer, or refuses a statement.",
        "See that it runs and what it allows; then start the query again: the micro-batch comes again.",
    ),
    "PYSTORM_EXTERNAL_FAILURE": Condition(
        "WorldError",
        "Your spout or bolt raised `WorldError`, or a server has refused what a ready-made spout asked for: "
        "something outside is missing, unreachable or not as it was declared.",
        "Read the message; trying again may help.",
    ),
    "PYSTORM_NO_PROCESSES": Condition(
        "WorldError",
        "The system gives a Spark task no memory, files or process numbers for the processes of a bolt (`processes=`).",
        "Raise the limit that the message names, or lower `processes` (`docs/PROCESSES.md`).",
    ),
    "PYSTORM_FILE_UNREADABLE": Condition(
        "WorldError",
        "A file or directory that is being read cannot be opened or unpacked, or is not mounted.",
        "Mount it under the same path on every executor and let the process read it; repair or remove the file.",
    ),
    "PYSTORM_KAFKA_UNREACHABLE": Condition(
        "WorldError",
        "Kafka's brokers or the schema registry do not answer, a partition's leader gives nothing, or the registry "
        "gives this client no schema.",
        "See that they run, and that driver and executors reach `kafka.bootstrap.servers` and `schema.registry.url`; "
        "set the registry's credentials, such as `schema.registry.basic.auth.user.info`.",
    ),
    "PYSTORM_KAFKA_REFUSES": Condition(
        "WorldError",
        "Kafka refuses the client, the client does not trust the broker, or the function of `kafka.oauth_cb` gave no "
        "token.",
        "Look at the `kafka.security.*`, `kafka.sasl.*` and `kafka.ssl.*` options (`docs/KAFKA.md`), on the driver and "
        "on every executor.",
    ),
    "PYSTORM_KAFKA_TOPIC_NOT_FOUND": Condition(
        "WorldError",
        "Kafka does not have a topic or partition that an option names.",
        "Create it, or take it out of the option.",
    ),
    "PYSTORM_TUPLE_FAILED": Condition(
        "TupleFailed",
        "A component raised an exception, for a tuple or in a call such as `initialize()`, or failed a tuple.",
        "Mend the component, whose own traceback is the cause; or allow retries and dead letters.",
    ),
    "PYSTORM_TUPLE_TIMED_OUT": Condition(
        "TupleFailed",
        "A tuple was neither acked nor failed within `topology.message.timeout.secs`.",
        "Ack every tuple, make the slow component quicker, or raise the time-out.",
    ),
    "PYSTORM_SPOUT_UNAVAILABLE": Condition(
        "TupleFailed",
        "The source of a spout was busy for longer than `spout.unavailable.timeout`: each call raised `RetryLater`, or "
        "what `topology.retry.on` calls worth a retry.",
        "Bring the source back and start the query again, which goes on where it was; or raise the time-out.",
    ),
    "PYSTORM_NO_PROGRESS": Condition(
        "UsageError",
        "There is no record: nothing in the query is of this package, or is counted; or, on Spark 4.0 and 4.1, the "
        "record is not on this machine.",
        "Give `progress` a query that reads or writes `format('pystorm')`, on the driver's machine. To count an "
        "operator, write `apply(df, Topology, counts='name')`.",
    ),
    "PYSTORM_NO_STACKS": Condition(
        "UsageError",
        "The tasks of a query cannot be asked what they do: the driver is on another machine or another user's, no "
        "task has begun, the query has ended, or it has the option `feedback=off`.",
        "Run `pystorm-source ui --stacks` on the driver's machine as its user, while a micro-batch runs.",
    ),
    "PYSTORM_ROWS_RETURNED": Condition(
        "TypeError",
        "A call of a component returned rows and emitted nothing. It is an error in a test and in "
        "`pystorm-source run`; on Spark a warning in the log of the task, once. A coroutine that is returned or "
        "called without await never runs, which is an error on Spark, too.",
        "`self.emit([...])` for each row; `process()` returns nothing. Await a coroutine in an `AsyncBolt`.",
    ),
    "PYSTORM_UNKNOWN_STREAM": Condition(
        "ValueError",
        "A component emits to a stream that it does not declare.",
        "Declare it in `outputs`: `Stream(['field type'], name='stream')`.",
    ),
    "PYSTORM_UNKNOWN_FIELD": Condition(
        "ValueError",
        "`tups.column(field)` in `process_many` names a field that a stream of the tuples does not have.",
        "Name a field of that stream, or its place from 0 on; `tup.stream` tells the tuples of several streams apart.",
    ),
    "PYSTORM_EMIT_NOT_A_LIST": Condition(
        "TypeError",
        "A component emits something else than a list or a tuple.",
        "`emit([value])`: one value for each field.",
    ),
    "PYSTORM_WRONG_NUMBER_OF_FIELDS": Condition(
        "ValueError",
        "An emit has more or fewer values than its stream has fields, or the columns of an `emit_many`, or its "
        "`tup_ids`, are not of the same length.",
        "Emit a value for each field of `outputs` and for every row, `None` for what is unknown.",
    ),
    "PYSTORM_VALUE_DOES_NOT_FIT": Condition(
        "RowError or TypeError",
        "A value cannot be stored in a column of the declared type, or cannot be copied where a test asks for that.",
        "Emit values of the types in `outputs`, or declare the types that the values have.",
    ),
    "PYSTORM_OFFSET_MISSING": Condition(
        "ValueError",
        "A `PartitionedSpout` emits without the offset of the tuple.",
        "`emit(values, tup_id=offset)` with the offset, an `int`.",
    ),
    "PYSTORM_OFFSET_OUT_OF_RANGE": Condition(
        "ValueError",
        "A `PartitionedSpout` emits an offset that is not in the range that it was asked to read.",
        "Return `False` from `next_tuple()` at the end of the range.",
    ),
    "PYSTORM_INVALID_ANCHOR": Condition(
        "ValueError or TypeError",
        "The anchors of an emit are no list of tuples, or what is acked or failed is no tuple.",
        "`emit(values, anchors=[tup])`, before the tuple is acked or failed.",
    ),
    "PYSTORM_ANCHOR_CLOSED": Condition(
        "ValueError",
        "An emit is anchored to a tuple that is acked, failed or given up; or an `AsyncBolt` does not await a "
        "coroutine or task whose emits would be.",
        "Emit first, then ack; await what an `AsyncBolt` starts; or emit with `anchors=[]`.",
    ),
    "PYSTORM_EMIT_OUTSIDE_OF_RUN": Condition(
        "RuntimeError",
        "A component emits, acks or fails before `initialize()`, after `cleanup()`, or between two micro-batches.",
        "Emit while the component is called; threads of a bolt hand their results to its next call.",
    ),
    "PYSTORM_INVALID_DIRECT_TASK": Condition(
        "ValueError or TypeError",
        "An emit names a task on a stream that is not direct, none on one that is, or no id of a task.",
        "Declare `Stream(..., direct=True)` and emit with `direct_task=` an id of `context['task->component']`.",
    ),
    "PYSTORM_VALUE_WITHOUT_HASH": Condition(
        "TypeError",
        "A fields grouping selects a value of a type that has no hash that is equal in every process.",
        "Group by text, numbers, bytes, dates, or lists, dicts and dataclasses of these.",
    ),
    "PYSTORM_MESSAGE_ID_MISSING": Condition(
        "ValueError",
        "A `ReliableSpout` emits without the id that its acks and fails come with.",
        "Call `emit(values, tup_id=...)` with your id.",
    ),
    "PYSTORM_TASK_IDS_UNKNOWN": Condition(
        "ValueError",
        "An emit asks for its task ids, which are chosen later: behind a journal, or after earlier requests.",
        "Leave `need_task_ids` out; or run without `journal.path`, or with `topology.async.ordered=false`.",
    ),
    "PYSTORM_INVALID_RETURN_VALUE": Condition(
        "ValueError or TypeError",
        "A method of a component, or `choose_tasks()` of a custom grouping, returned another value than the engine "
        "needs.",
        "Return what the message asks for.",
    ),
}
"""In the order of ``Code``, as on the page."""
