"""The data source as a test sees it: what the tasks have reported is written down, a JSON object per line."""

import json
import time
from functools import partial
from pathlib import Path

import msgspec

from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.driver.stream_reader import PystormStreamReader

LAST_SECONDS = 10.0
"""How long the end of a run waits for the reports of the last micro-batch, which are on their way. Too large: a run
whose reports are lost ends late. Too small: on a busy machine a test misses some."""


class SpyReader(PystormStreamReader):
    """Keeps reports in ``reports.log`` of the option ``path``, when it takes them for the next plan and at the end of
    the run."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        receiver = self._telemetry.receiver
        # Order: what it takes is what is kept. A look before it takes them would miss those that come in between.
        receiver.take = partial(self._keep, receiver.take)

    def stop(self):
        end, told = time.monotonic() + LAST_SECONDS, self._telemetry
        while told.receiver.on and not told.counts.await_reports(0.0) and time.monotonic() < end:
            time.sleep(0.01)
        told.receiver.take()
        super().stop()

    def _keep(self, take):
        reports = take()
        with (Path(self._request.options.path) / "reports.log").open("a") as log:
            log.writelines(json.dumps(msgspec.to_builtins(report)) + "\n" for report in reports)
        return reports


class SpySource(PystormDataSource):
    format_name = "pystorm_spy"

    def streamReader(self, schema):
        return SpyReader(self.request, self.request.rows.output(schema))


def reports_in(folder):
    """What was written down, oldest first."""
    log = Path(folder) / "reports.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
