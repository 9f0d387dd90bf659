"""``pystorm-source ui``: the page of the queries that run on this machine, or of record files, over HTTP."""

import ipaddress
import secrets
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import package
from pystorm_source.observe.page.runs import Runs

BACKLOG = 64
"""Connections that the kernel keeps until the page is ready. More: memory. Less: a browser at once is refused."""


def ui(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="A record file, or a folder of them. Default: those of running drivers."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on. If not loopback, others reach it.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
) -> None:
    """Show what queries do, in a browser: the bottleneck, the topology, admission, partitions, errors.

    It reads the record files that each query of this package writes on its driver's machine: those of this user, or
    those in PATH, such as the folder of the option progress.path. It prints an address with a token, without which
    nothing is served. It runs until Ctrl-C.
    """
    with usage_errors():
        if path is not None and not path.exists():
            raise OptionError(
                f"PATH takes a record file, or a folder of them, such as that of the option progress.path. Given: "
                f"{str(path)!r}, which does not exist",
                code="PYSTORM_PATH_NOT_FOUND",
            )
        page_server = _page_server()
        listener = _listener(host, port)
    token = secrets.token_urlsafe(32)  # 256 bits, in characters that an address may have
    typer.echo(f"http://{_authority(listener)}/{token}/")
    if not _is_loopback(listener):
        typer.echo(
            "warning: the page is not encrypted, and its address is the key to it: put a proxy with TLS before it, or "
            "listen on 127.0.0.1 and forward a port by ssh -L",
            err=True,
        )
    page_server.server_of(Runs(path), token).run(sockets=[listener])


def _page_server() -> Any:
    """The module that serves the page, which needs these packages."""
    for name in ("starlette", "uvicorn"):
        package(name, "pystorm-source ui", "ui")
    from pystorm_source.cli import page_server

    return page_server


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # from now on a browser waits instead of being refused
    except OSError as error:
        raise OptionError(
            f"--host and --port name no address that this process can listen on ({error.strerror}): give an address of "
            f"this machine, and a port that is free, or 0. Given: {host!r}, {port}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    return listener


def _authority(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback
