"""``pystorm-source metrics``: the Grafana dashboard and the Prometheus alerts of this package."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pystorm_source import observe

FOLDER = Path(observe.__file__).parent


class Shipped(StrEnum):
    """What can be printed."""

    dashboard = "dashboard"
    alerts = "alerts"


FILES = {Shipped.dashboard: "grafana.json", Shipped.alerts: "alerts.yaml"}


def metrics(
    what: Annotated[
        Shipped, typer.Argument(help="The dashboard for Grafana (JSON), or the alerts for Prometheus (YAML).")
    ],
) -> None:
    """Print the dashboard or the alerts for the metrics of a query: into a file for Grafana, or for Prometheus."""
    typer.echo((FOLDER / FILES[what]).read_text(encoding="utf-8"), nl=False)
