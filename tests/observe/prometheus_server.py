"""A Prometheus of Debian's that scrapes one address every second and evaluates the shipped alerts."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pystorm_source
from testbed.ports import free_port
from tests.missing import missing

FOLDER = Path(pystorm_source.__file__).parent / "conf" / "metrics"
ALERTS = FOLDER / "alerts.yaml"
DASHBOARD = FOLDER / "grafana.json"
STARTS_SECONDS = 30


def program(name: str) -> str:
    """Its path; without it the test fails with CI=true, else it is skipped."""
    found = shutil.which(name)
    if found is None:
        missing(name, "prometheus")
    return found


class PrometheusServer:
    """Asked over its HTTP interface."""

    def __init__(self, port: int):
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **query: str) -> Any:
        """``data`` of an answer."""
        with urllib.request.urlopen(f"{self._url}{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series now."""
        found = self.get("/api/v1/query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Name → an alert that is pending or firing."""
        return {each["labels"]["alertname"]: each for each in self.get("/api/v1/alerts")["alerts"]}

    def rules(self) -> list[dict[str, Any]]:
        """The rules, with their health."""
        return [rule for group in self.get("/api/v1/rules")["groups"] for rule in group["rules"]]


def eventually(ask: Callable[[], Any], seconds: float = 60) -> Any:
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer or time.monotonic() > end:
            assert answer, f"not within {seconds} s"
            return answer
        time.sleep(0.1)


@contextmanager
def prometheus_server(folder: Path, target: int) -> Iterator[PrometheusServer]:
    """It scrapes that port of this machine."""
    folder.mkdir(exist_ok=True)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{ALERTS}']\n"
        f"scrape_configs: [{{job_name: pystorm, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
    )
    port = free_port()
    command = [program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log)
    server = PrometheusServer(port)
    try:
        eventually(lambda: process.poll() is not None or ready(server), STARTS_SECONDS)
        assert process.poll() is None, (folder / "log").read_text()
        yield server
    finally:
        process.terminate()
        process.wait(20)


def ready(server: PrometheusServer) -> bool:
    try:
        server.query("up")
    except OSError:
        return False
    return True
