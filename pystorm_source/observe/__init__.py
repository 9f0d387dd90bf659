"""Shows, outside of Spark, what a query did. Reads the ``records``; knows neither Spark nor the engine.

::

    PystormProgressListener ─ record ─┬─▶ Prometheus ────▶ a scrape      ┐ measures: counters and gauges of all runs
                                      ├─▶ OpenTelemetry ─▶ an exporter   ┘ metric_definitions: their names and labels
                                      └─▶ JsonLines ─────▶ a file
"""

from pystorm_source.observe.chart import Chart
from pystorm_source.observe.json_lines import JsonLines
from pystorm_source.observe.otel import OpenTelemetry
from pystorm_source.observe.prometheus import Prometheus

__all__ = ["Chart", "JsonLines", "OpenTelemetry", "Prometheus"]
