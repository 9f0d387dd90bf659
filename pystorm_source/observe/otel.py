"""Metrics of queries for OpenTelemetry."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pystorm_source.errors.packages import package
from pystorm_source.observe.measures import Measures
from pystorm_source.observe.metric_definitions import COMMON, DEFINITIONS, Definition
from pystorm_source.records.record import PystormProgress
from pystorm_source.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider, Observation


class OpenTelemetry:
    """Gives the metrics of a session's queries to OpenTelemetry. Needs the extra ``otel``.

    A callback for ``PystormProgressListener``. It has the same metrics as ``Prometheus``, named
    ``pystorm.emit_count``, ``pystorm.capacity`` and so on; labels are attributes.

    Args:
        meter_provider (opentelemetry.metrics.MeterProvider | None): has the exporters. Defaults to None: the process's
            provider, which ``opentelemetry.metrics.set_meter_provider`` or the environment has set.
        runs (int): how many runs of queries are kept. Defaults to 10.

    Raises:
        OptionError: opentelemetry-api is not installed.

    Example:
        >>> from pystorm_source import PystormProgressListener
        >>> from pystorm_source.observe import OpenTelemetry
        >>> listener = PystormProgressListener(OpenTelemetry())
        >>> spark.streams.addListener(listener)
        >>> spark.streams.removeListener(listener)
    """

    def __init__(self, meter_provider: "MeterProvider | None" = None, runs: int = 10):
        self._metrics = package("opentelemetry.metrics", "OpenTelemetry", "otel")
        self._measures = Measures(runs)
        meter = self._metrics.get_meter("pystorm_source", __version__, meter_provider)
        for name, definition in DEFINITIONS.items():
            create = getattr(meter, f"create_observable_{definition.kind}")
            # No unit for numbers and shares: exporters would put it into the name.
            create(
                f"pystorm.{name}",
                callbacks=[self._observer(name, definition)],
                unit="s" if definition.unit == "seconds" else "",
                description=definition.meaning,
            )

    def __call__(self, record: PystormProgress) -> None:
        """Adds the record of a micro-batch.

        Args:
            record (PystormProgress): as ``PystormProgressListener`` gives it.
        """
        self._measures.update(record)

    def query_ended(self, run_id: str) -> None:
        """Removes the gauges of a run; ``PystormProgressListener`` calls it.

        Args:
            run_id (str): Spark's.
        """
        self._measures.end(run_id)

    def _observer(self, name: str, definition: Definition) -> Any:
        labels = (*COMMON, *definition.labels)

        def observe(_options: Any) -> "Iterator[Observation]":
            for common, samples in self._measures.samples().items():
                for sample in samples.get(name, ()):
                    attributes = dict(zip(labels, (*common, *sample.labels), strict=True))
                    if not common.use:
                        del attributes["use"]  # as Prometheus takes an empty label
                    yield self._metrics.Observation(sample.value, attributes)

        return observe
