"""Connects a task's process to a runner: reports, answers and requests for permits share one connection.

The connection outlives the task. A forked process starts with new clients.
"""

from pystorm_source.channel.leases.lease_client import LeaseClient
from pystorm_source.channel.reports.client_thread import ClientThread
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.link import Link
from pystorm_source.channel.reports.sender import ReportSender
from pystorm_source.channel.reports.server_clients import ServerClients
from pystorm_source.clock import Clock, SystemClock


class RunnerClient:
    """``reports``, ``permits``: this process's, to and from one runner."""

    def __init__(self, runner: Runner, clock: Clock | None = None):
        clock = clock or SystemClock()
        link = Link(runner, clock)
        thread = ClientThread("pystorm-channel", link, clock)
        self.reports = ReportSender(link, thread)
        self.permits = LeaseClient(link, thread)
        link.answer, link.took = self.reports.answered, self.permits.took
        thread.parts = (self.permits, self.reports)
        self.close, self.abandon = thread.close, link.end


_clients = ServerClients(RunnerClient)


def client(runner: Runner) -> RunnerClient:
    """Returns this process's client. Called by the thread that runs the tasks; closes those not used for longest."""
    return _clients.of(runner)
