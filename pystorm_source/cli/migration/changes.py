"""How each component is migrated: findings for the report, changes to the copies, options of the job."""

import ast
import re

from pystorm_source.cli.migration.components import Component, Emit, literal, state_of
from pystorm_source.cli.migration.edits import Edit, import_edits
from pystorm_source.cli.migration.foreign import as_kafka_spout, ask_for_python
from pystorm_source.cli.migration.java_spouts import QUESTION, kafka_source
from pystorm_source.cli.migration.jobs import STAYS, Job, Option
from pystorm_source.cli.migration.project import Project
from pystorm_source.cli.migration.python_files import PythonFile
from pystorm_source.cli.migration.settings import split_config
from pystorm_source.cli.migration.stream_types import StreamTypes
from pystorm_source.cli.migration.topologies import Spec, TopologyClass

HOOKS = ("initialize", "next_tuple", "process", "process_tick", "process_batch", "group_key", "ack", "fail")


class Changes:
    """All changes to a project. ``edits``: path → changes to the copy of that file. ``notes``: place → what changes."""

    def __init__(self, project: Project):
        self.project = project
        self.edits: dict[str, list[Edit]] = {file.path.as_posix(): [] for file in project.files}
        self.notes: list[tuple[str, str]] = [*project.settings.notes]
        self.jobs: list[Job] = []
        for topology in project.topologies:
            kafka = {
                name: found for name, spec in topology.specs.items() if (found := kafka_source(project.root, spec))
            }
            job = Job(self._name(topology), topology, kafka)
            self.jobs.append(job)
            for spec in topology.specs.values():
                self._look_at(job, spec)
            self._type_rows(job)
            self._configure(job)
        for file in project.files:
            self._import(file)

    @property
    def questions(self) -> int:
        """The number of questions."""
        found = [note for job in self.jobs for notes in job.notes.values() for note in notes if note.kind == QUESTION]
        return len(found) + sum(text.startswith(QUESTION) for _, text in self.notes)

    def _name(self, topology: TopologyClass) -> str:
        alone = sum(other.file is topology.file for other in self.project.topologies) == 1
        return re.sub(r"\W", "_", topology.file.module + ("" if alone else f"_{topology.name}"))

    # --- components ---------------------------------------------------------------------------------------------------

    def _look_at(self, job: Job, spec: Spec) -> None:
        component = spec.component
        edits = self.edits[job.topology.file.path.as_posix()]
        if spec.attribute in job.kafka:
            edits += as_kafka_spout(job, spec, job.kafka[spec.attribute])
        elif spec.foreign:
            ask_for_python(job, spec)
        elif component is None:
            job.ask(spec, f"class {spec.class_name} is not in src: does its package import pystorm_source?")
        elif not component.kind:
            bases = ", ".join(ast.unparse(base) for base in component.node.bases)
            job.ask(spec, f"{component.at}: what is {bases}? It must be a spout or bolt of pystorm_source")
        else:
            self._look_at_python(job, spec, component)
        for key, instead in split_config(spec.config)[1].items():
            job.change(spec, f"{key}: {instead}")
        if not spec.is_spout and len(job.topology.upstream_spouts(spec)) > 1:
            job.change(
                spec,
                'tuples of two spouts never meet in one task: use a fields grouping with scope="cluster", or join them '
                "in Spark (docs/MIGRATING.md, 4)",
            )

    def _look_at_python(self, job: Job, spec: Spec, component: Component) -> None:
        job.note(spec, STAYS, ", ".join(name for name in HOOKS if name in component.methods) or "all of it")
        if component.outputs is None:
            job.ask(spec, f"{component.at}: outputs are made by code; which fields and types do they have?")
        for emit in component.emits:
            self._look_at_emit(job, spec, component, emit)
        state = {} if component.is_spout else state_of(component)
        if state:
            names = ", ".join(f"self.{name} ({at})" for name, at in state.items())
            job.change(
                spec,
                f"{names}: lives as long as a Python process of one query, not as long as the topology. Emit "
                "increments, and let Spark add them up (docs/MIGRATING.md, 4)",
            )
        if component.kind in ("BatchingBolt", "TicklessBatchingBolt") or "process_tick" in component.methods:
            job.change(spec, "each micro-batch ends with a tick: batches fire then, whatever the time")
        if component.is_spout and component.kind != "PartitionedSpout":
            self._deliver(job, spec, component)

    def _deliver(self, job: Job, spec: Spec, component: Component) -> None:
        if component.kind == "ReliableSpout" or any(emit.has_id for emit in component.emits):
            job.change(spec, "no offsets that Spark could replay: job.py sets journal.path, which keeps its tuples")
            if component.kind == "ReliableSpout":
                job.change(spec, "after max_fails a tuple fails the task; topology.dead.letter=drop is the old way")
            job.options = [each for each in job.options if each.key not in ("delivery.guarantee", "journal.path")]
            why = (
                f"{spec.name} emits with message ids: Spark replays its tuples from here. On a cluster: a shared place"
            )
            job.options.append(Option("journal.path", "journal", why))
            return
        job.change(
            spec,
            "no message ids, no offsets: job.py sets delivery.guarantee=best-effort, as on Storm. With journal.path "
            "instead, tuples outlive a failed task. A PartitionedSpout needs no journal (docs/WRITING_A_SPOUT.md)",
        )
        if not {"delivery.guarantee", "journal.path"} & {each.key for each in job.options}:
            why = f"{spec.name} emits without message ids: as on Storm, the tuples of a failed task are lost"
            job.options.append(Option("delivery.guarantee", "best-effort", why))

    def _look_at_emit(self, job: Job, spec: Spec, component: Component, emit: Emit) -> None:
        """Notes where an emit does not fit the declared streams."""
        if component.outputs is None:
            return
        fields, at = component.outputs.get(emit.stream), emit.file.at(emit.node)
        if fields is None or not fields:
            job.ask(spec, f"{at} emits to the stream {emit.stream!r}, which `outputs` does not have: declare it")
        elif emit.values is not None and len(emit.values) != len(fields):
            job.ask(spec, f"{at} emits {len(emit.values)} values for {len(fields)} fields, which is an error here")

    # --- the topology -------------------------------------------------------------------------------------------------

    def _type_rows(self, job: Job) -> None:
        streams = job.topology.open_streams()
        if not streams:
            job.ask(None, "no stream leaves the topology, and Spark needs one: give its last bolt `outputs`")
            return
        spec, stream = streams[0]
        if len(streams) > 1:
            names = ", ".join(f"{each.name}.{name}" for each, name in streams)
            job.options.append(Option("stream", f"{spec.name}.{stream}", f"One of {names}; each can have a query"))
            job.change(None, f"streams that leave as rows: {names}; job.py reads the first")
        fields = (spec.outputs or {}).get(stream, [])
        if spec.attribute in job.kafka:
            return
        types = StreamTypes(job.topology, job.kafka).columns(spec, stream)
        typed = {field.split(" ")[0]: ddl for field, ddl in zip(fields, types, strict=True)}
        job.schema = ", ".join(f"{name} {ddl or QUESTION}" for name, ddl in typed.items())
        unsure = [name for name, ddl in typed.items() if ddl is None]
        if unsure:
            job.ask(spec, f"which type has {', '.join(unsure)}: string, long, double, timestamp, …? SCHEMAS in job.py")
        else:
            job.change(spec, f"its stream leaves as rows: {job.schema} (SCHEMAS in job.py)")

    def _configure(self, job: Job) -> None:
        config = job.topology.config
        if isinstance(config, dict):
            for key, instead in split_config(config)[1].items():
                job.change(None, f"config {key}: {instead}")
        else:
            job.ask(None, "config is made by code: which of its keys mean something here (docs/OPTIONS.md)?")
        pars = [literal(spec.given.get("par"), 1) for spec in job.topology.specs.values()]
        if any(par != 1 for par in pars):
            job.change(None, "`par` counts tasks inside one Spark task; more cores come from more Spark tasks")
        if any(isinstance(par, dict) for par in pars):
            job.change(None, "a `par` by environment: conf/ENVIRONMENT.yaml sets topology.environment")
            for name, conf in self.project.settings.conf.items():
                conf["topology.environment"] = name

    # --- imports ------------------------------------------------------------------------------------------------------

    def _import(self, file: PythonFile) -> None:
        if file.tree is None:
            return
        specs = [(job, spec) for job in self.jobs if job.topology.file is file for spec in job.topology.specs.values()]
        kafka = {spec.foreign for job, spec in specs if spec.attribute in job.kafka}
        dropped = kafka - {spec.foreign for job, spec in specs if spec.attribute not in job.kafka}
        edits, gone = import_edits(file, dropped, self.project.src_modules)
        if kafka:
            imports = [node for node in file.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
            theirs = [node for node in imports if "streamparse" in ast.unparse(node)]
            edits.append(Edit.after((theirs or imports)[0], "from pystorm_source.spouts import KafkaSpout"))
        self.edits[file.path.as_posix()] += edits
        self.notes += gone
