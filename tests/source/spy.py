"""The data source as a test sees it: what the tasks have reported is written down, a JSON object per line."""

import json
import time
from pathlib import Path

import msgspec

from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.driver.stream_reader import PystormStreamReader

LAST_SECONDS = 10.0
"""How long the end of a run waits for the reports of the last micro-batch, which are on their way. Too large: a run
whose reports are lost ends late. Too small: on a busy machine a test misses some."""


class SpyReader(PystormStreamReader):
    """Keeps reports in ``reports.log`` of the option ``path``, whenever the next micro-batch is planned, and at the end
    of the run."""

    def latestOffset(self, start=None, limit=None):
        self._keep()
        return super().latestOffset(start, limit)

    def stop(self):
        end, told = time.monotonic() + LAST_SECONDS, self._telemetry
        while told.receiver.on and not told.counts.await_reports(0.0) and time.monotonic() < end:
            time.sleep(0.01)
        self._keep()
        super().stop()

    def _keep(self):
        with (Path(self._request.options.path) / "reports.log").open("a") as log:
            log.writelines(json.dumps(msgspec.to_builtins(report)) + "\n" for report in self._telemetry.receiver.take())


class SpySource(PystormDataSource):
    format_name = "pystorm_spy"

    def streamReader(self, schema):
        return SpyReader(self.request, self.request.rows.output(schema))


def reports_in(folder):
    """What was written down, oldest first."""
    log = Path(folder) / "reports.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
