"""What spouts and bolts have in common: lifecycle, identity, logging."""

import logging
from typing import Any, ClassVar

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.stream import Stream

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


class Component:
    """Base of spouts and bolts, in streamparse's shape.

    Class attributes: ``outputs`` (list of field names and/or ``Stream``), ``par`` (tasks inside one Spark task),
    ``config`` (dict for this component only). Identity (``component_name``, ``task_id``, ``topology_name``, …) is None
    until the engine starts the component.
    """

    outputs: ClassVar[Any] = None
    par: ClassVar[int | dict[str, int]] = 1
    config: ClassVar[dict[str, Any] | None] = None
    exit_on_exception: ClassVar[bool] = True

    topology_name: str | None = None
    component_name: str | None = None
    task_id: int | None = None
    debug: bool | None = None
    storm_conf: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    logger: logging.Logger | None = None

    def __init__(
        self, input_stream: Any = None, output_stream: Any = None, rdb_signal: Any = None, serializer: Any = None
    ):
        """Takes streamparse's four arguments and ignores them: values travel in memory, no pipe is read or written."""

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Called once before the first tuple, positionally. ``conf``: merged configuration; ``context``: who we are."""

    def cleanup(self) -> None:
        """Called once when the task's worker is given up; not called where the process is killed."""

    def log(self, message: str, level: str | None = None) -> None:
        """Logs to ``pystorm.component.<name>``. Raises ValueError for an unknown level."""
        if level is not None and level not in _LEVELS:
            raise ValueError(f"a log level is one of {', '.join(_LEVELS)}; Given: {level!r}")
        logger = self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")
        logger.log(_LEVELS[level or "info"], message)

    def _start(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """The engine's: gives the component its identity, then initializes it."""
        self.storm_conf = conf
        self.context = context
        self.topology_name = conf.get("topology.name")
        self.component_name = context["componentid"]
        self.task_id = context["taskid"]
        self.debug = bool(conf.get("topology.debug", False))
        self.logger = logging.getLogger(f"pystorm.component.{self.component_name}")
        self.initialize(conf, context)

    @classmethod
    def _streams(cls) -> tuple[Stream, ...]:
        return Stream.all_of(cls.outputs, given_by=cls.__name__)

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> ComponentSpec:
        raise TypeError(f"spec() is defined by Spout and Bolt; subclass one of them. Given: {cls!r}")
