"""The runner's end of the way back: endpoints for tasks, and their reports."""

import errno
import logging
import secrets
from collections.abc import Callable, Hashable, Sequence

from pystorm_source.channel.reports.endpoint import ListenAddress, ReportEndpoint, in_runner, parents_command
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.options import SourceOptions

logger = logging.getLogger("pystorm.source")

_TOKEN_BYTES = 32
# Seconds until it tries to listen again, and up to how many that doubles. Too large: a query stays without reports when
# the port is free again. Too small: a port that stays taken is asked for all the time.
_FIRST_RETRY = 10.0
_LONGEST_RETRY = 600.0


class ReportReceiver:
    """One reader's reports. Opens no socket before the first ``endpoint``, and none outside the runner.

    If it cannot listen, it logs this once, tries again now and then, and the query goes on without reports. Raises
    nothing. ``here``: whether this process may listen. ``driver_command``: that of the driver's JVM. ``on_report``,
    ``ask_at``, ``leases``: as the ``ReportServer`` takes them.
    """

    def __init__(
        self,
        options: SourceOptions,
        clock: Clock | None = None,
        here: bool | None = None,
        driver_command: Sequence[str] | None = None,
        on_report: Callable[[TaskReport], None] | None = None,
        ask_at: Callable[[], QuestionListener | None] | None = None,
        leases: Callable[[Hashable, bytes], bytes] | None = None,
    ):
        self._leases = leases
        self._ask_at = ask_at
        self._on_report = on_report
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
        """The endpoint for tasks; None if they are not to report."""
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
        """Gives the port back: only tasks that are connected may go on to report. May be called again."""
        self._on = False
        if self._server is not None:
            self._server.refuse()

    def close(self) -> None:
        """Listens no more. May be called again."""
        self._on = False
        self._endpoint = None
        if self._server is not None:
            self._server.close()

    def _listen(self) -> None:
        place = ListenAddress.of(
            self._host, parents_command() if self._driver_command is None else self._driver_command
        )
        token = secrets.token_bytes(_TOKEN_BYTES)
        try:
            server = self._started(place, token)
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
        self._server = server
        self._endpoint = ReportEndpoint(place.advertised, server.address[1], token)
        logger.debug("reports of tasks are received at %s, port %d", place.bind or "all addresses", server.address[1])

    def _pause(self) -> None:
        self._retry_after = min(_LONGEST_RETRY, 2 * self._retry_after or _FIRST_RETRY)
        self._retry_at = self._clock.monotonic() + self._retry_after

    def _started(self, place: ListenAddress, token: bytes) -> ReportServer:
        server = self._new_server(place.bind, token)
        try:
            server.start()
        except OSError as error:
            # The tasks' name of the driver need not be an address of this machine: a service's name, a gateway.
            if error.errno != errno.EADDRNOTAVAIL or not self._host:
                raise
            server = self._new_server("", token)
            server.start()
        return server

    def _new_server(self, bind: str, token: bytes) -> ReportServer:
        return ReportServer(
            bind, self._port, token, on_report=self._on_report, ask_at=self._ask_at, leases=self._leases
        )
