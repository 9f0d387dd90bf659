"""The runner's end of the channel: endpoints for tasks, and their reports."""

import logging
from collections.abc import Callable, Sequence

from pystorm_source.channel.reports.endpoint import ListenAddress, ReportEndpoint, in_runner, parents_command
from pystorm_source.channel.reports.server import ReportServer, serve
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.options import SourceOptions

logger = logging.getLogger("pystorm.source")

# Seconds until it tries to listen again; they double up to the second value. Too large: a query stays without reports
# when the port is free again. Too small: a port that stays taken is asked for all the time.
_FIRST_RETRY = 10.0
_LONGEST_RETRY = 600.0


class ReportReceiver:
    """One reader's reports. Opens no socket before the first ``endpoint``, and none outside the runner.

    If it cannot listen, it logs this once, tries again now and then, and the query goes on without reports. Raises
    nothing. ``here``: whether this process may listen. ``driver_command``: the command line of the driver's JVM.
    ``make``: makes the server from a host, a port and a token.
    """

    def __init__(
        self,
        options: SourceOptions,
        clock: Clock | None = None,
        here: bool | None = None,
        driver_command: Sequence[str] | None = None,
        make: Callable[[str, int, bytes], ReportServer] = ReportServer,
    ):
        self._make = make
        self._host = options.feedback_host
        self._port = options.feedback_port
        self._clock = clock or SystemClock()
        self._on = options.feedback != "off" and (in_runner() if here is None else here)
        self._driver_command = driver_command
        self._server: ReportServer | None = None
        self._endpoint: ReportEndpoint | None = None
        self._retry_at = 0.0
        self._retry_after = 0.0
        self._said = False

    @property
    def on(self) -> bool:
        """Whether reports can be expected."""
        return self._endpoint is not None

    @property
    def dropped(self) -> dict[str, int]:
        """Reason → number of unused frames and connections."""
        return self._server.dropped if self._server is not None else {}

    def endpoint(self) -> ReportEndpoint | None:
        """The endpoint for tasks; None if they should not report."""
        if self._endpoint is not None and self._server is not None and not self._server.listens:
            self._endpoint = None
            self._pause()
        if self._endpoint is None and self._on and self._clock.monotonic() >= self._retry_at:
            self._listen()
        return self._endpoint

    def take(self) -> list[TaskReport]:
        """The reports since the last call, oldest first."""
        return self._server.take() if self._server is not None else []

    def refuse(self) -> None:
        """Frees the port: only connected tasks can still report. May be called again."""
        self._on = False
        if self._server is not None:
            self._server.refuse()

    def close(self) -> None:
        """Stops listening. May be called again."""
        self._on = False
        self._endpoint = None
        if self._server is not None:
            self._server.close()

    def _listen(self) -> None:
        place = ListenAddress.of(
            self._host, parents_command() if self._driver_command is None else self._driver_command
        )
        try:
            self._server, self._endpoint = serve(place, self._port, self._make)
        except Exception as error:
            if not self._said:
                self._said = True
                logger.warning(
                    "no reports of tasks are received, as this process cannot listen (%s): set feedback.host and "
                    "feedback.port to an address of the driver that is free, or feedback=off. The query goes on "
                    "without them. Given: feedback.host=%r, feedback.port=%r",
                    error,
                    self._host,
                    self._port,
                )
            self._pause()
            return
        logger.debug("reports of tasks are received at %s, port %d", place.bind or "all addresses", self._endpoint.port)

    def _pause(self) -> None:
        self._retry_after = min(_LONGEST_RETRY, 2 * self._retry_after or _FIRST_RETRY)
        self._retry_at = self._clock.monotonic() + self._retry_after
