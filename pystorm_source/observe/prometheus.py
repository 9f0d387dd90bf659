"""Metrics of queries for Prometheus."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import package
from pystorm_source.observe.measures import Measures
from pystorm_source.observe.metric_definitions import COMMON, DEFINITIONS, Definition
from pystorm_source.observe.metrics_server import start_server
from pystorm_source.records.record import PystormProgress

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


class Prometheus:
    """Serves the metrics of a session's queries to Prometheus. Needs the extra ``prometheus``.

    A callback for ``PystormProgressListener``. docs/METRICS.md lists the metrics; what Storm counts has Storm's
    names. When a query ends, its gauges disappear; its counters stay until newer runs take their place.

    Args:
        port (int | None): where ``/metrics`` is served; 0: any free port, which the attribute ``port`` then has.
            Defaults to None: no server, for a process that serves ``registry`` itself.
        addr (str): address that the server listens on. Defaults to ``'127.0.0.1'``: for this machine only.
        registry (prometheus_client.CollectorRegistry | None): where the metrics are registered. Defaults to None: a new
            one if there is a ``port``, otherwise the process's, ``prometheus_client.REGISTRY``.
        runs (int): how many runs of queries are kept. Defaults to 10.

    Raises:
        OptionError: prometheus_client is not installed, or the address cannot be listened on.

    Attributes:
        port (int | None): where it is served.
        registry (prometheus_client.CollectorRegistry): where the metrics are registered.

    Example:
        >>> from pystorm_source import PystormProgressListener
        >>> from pystorm_source.observe import Prometheus
        >>> metrics = Prometheus(port=0)
        >>> listener = PystormProgressListener(metrics)
        >>> spark.streams.addListener(listener)
        >>> metrics.port > 0
        True
        >>> spark.streams.removeListener(listener)
        >>> metrics.close()
    """

    def __init__(
        self,
        port: int | None = None,
        addr: str = "127.0.0.1",
        registry: "CollectorRegistry | None" = None,
        runs: int = 10,
    ):
        client = package("prometheus_client", "Prometheus", "prometheus")
        if registry is None:
            registry = client.REGISTRY if port is None else client.CollectorRegistry()
        self.registry: CollectorRegistry = registry
        self.port = port
        self._measures = Measures(runs)
        self._collector = _Collector(self._measures)
        self._server: Any = None
        if port is not None:
            try:
                self._server, self._thread = start_server(client.make_wsgi_app(registry), addr, port)
            except (OSError, OverflowError) as error:
                raise OptionError(
                    f"port and addr of Prometheus cannot be listened on ({error}): give another port, or port=0 for "
                    f"any. Given: {addr}:{port}",
                    code="PYSTORM_INVALID_OPTION",
                ) from None
            self.port = self._server.server_port
        registry.register(self._collector)

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

    def close(self) -> None:
        """Stops the server, and removes the metrics from the registry."""
        self.registry.unregister(self._collector)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class _Collector:
    """A collector of ``prometheus_client``, called at each scrape."""

    def __init__(self, measures: Measures):
        self._measures = measures

    def describe(self) -> "Iterator[Metric]":
        """The metrics without values."""
        return map(self._family, DEFINITIONS.values())

    def collect(self) -> "Iterator[Metric]":
        """The metrics that have a value."""
        runs = self._measures.samples().items()
        for name, definition in DEFINITIONS.items():
            family = self._family(definition)
            for common, samples in runs:
                for sample in samples.get(name, ()):
                    family.add_metric((*common, *sample.labels), sample.value)
            if family.samples:
                yield family

    def _family(self, definition: Definition) -> "CounterMetricFamily | GaugeMetricFamily":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        storm = f" (Storm: {definition.storm})" if definition.storm else ""
        labels = (*COMMON, *definition.labels)
        make = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
        return make(definition.full_name, definition.meaning + storm, labels=labels)
