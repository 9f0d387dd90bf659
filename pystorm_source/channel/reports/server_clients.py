"""The clients of this process, one for each runner or other server.

A forked process starts with new clients: it lacks its parent's threads, and their locks may be held.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

# Servers that one process talks to. Too large: threads of queries that ended. Too small: queries in turn reconnect.
_MOST_CLIENTS = 4


class ServerClient(Protocol):
    """``close``: non-blocking, sends what waits and ends. ``abandon``: in a forked process, closes its copy of the
    connection, which belongs to the other process."""

    def close(self) -> None: ...

    def abandon(self) -> None: ...


Server = TypeVar("Server", bound=Hashable)
Client = TypeVar("Client", bound=ServerClient)


class ServerClients(Generic[Server, Client]):
    """``make``: makes the client of a runner, or of another server. Called by the thread that runs the tasks; closes
    those not used for longest."""

    def __init__(self, make: Callable[[Server], Client]):
        self._make = make
        self._clients: OrderedDict[Server, Client] = OrderedDict()
        os.register_at_fork(after_in_child=self._begin_anew)

    def __repr__(self) -> str:
        return f"ServerClients({list(self._clients.items())!r})"

    def of(self, server: Server) -> Client:
        """Returns this process's client."""
        found = self._clients.pop(server, None) or self._make(server)
        self._clients[server] = found
        while len(self._clients) > _MOST_CLIENTS:
            _, oldest = self._clients.popitem(last=False)
            oldest.close()
        return found

    def _begin_anew(self) -> None:
        inherited = list(self._clients.values())
        self._clients.clear()
        for each in inherited:
            each.abandon()
