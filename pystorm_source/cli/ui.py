"""``pystorm-source ui``: the page of the queries on this machine or of record files, over HTTP or as a file; stacks."""

import ipaddress
import secrets
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError, UsageError
from pystorm_source.errors.packages import package
from pystorm_source.observe.page.document import document
from pystorm_source.observe.page.runs import Runs, recorded, view_of
from pystorm_source.records.question import ask
from pystorm_source.records.record_folder import private_folders, question_paths
from pystorm_source.records.standstill import Stacks

BACKLOG = 64
"""Connections that the kernel keeps until the page is ready. More: memory. Less: a quick browser is refused."""


def ui(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]", help="A record file, or a folder of them. Default: the files of running drivers."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="The address to listen on. Unless it is loopback, other machines can reach the page."
        ),
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free port.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the page of the newest run to FILE, and exit."),
    ] = None,
    stacks: Annotated[bool, typer.Option("--stacks", help="Print why queries make no progress, and exit.")] = False,
) -> None:
    """Show what queries do, in a browser: the bottleneck, the topology, admission, partitions, errors.

    It reads the record files that queries write on their driver's machine: this user's files, or the files in PATH,
    such as the folder of the option progress.path. It prints an address with a token, serves nothing without that
    token, and runs until Ctrl-C. A page written by --output needs no network.

    With --stacks, it asks the tasks of this user's queries which component is in a call, since when, at which line, and
    what waits for it. The queries' drivers must run on this machine. The tasks keep running. It cannot ask a query
    with feedback=off, or before its first micro-batch.
    """
    with usage_errors():
        if stacks:
            typer.echo(str(_stacks()))
        elif output is not None:
            _write(_newest(_existing(path)), output)
            typer.echo(output)
        else:
            _serve(_existing(path), host, port)


def _existing(path: Path | None) -> Path | None:
    if path is not None and not path.exists():
        raise OptionError(
            f"PATH takes a record file, or a folder of them, such as that of the option progress.path. Given: "
            f"{str(path)!r}, which does not exist",
            code="PYSTORM_INVALID_OPTION",
        )
    return path


def _stacks() -> Stacks:
    found = ask([path for folder in private_folders() for path in question_paths(folder)])
    if not found:
        raise UsageError(
            "no query on this machine can be asked: run it on the driver's machine as the driver's user, while a "
            "micro-batch runs, without feedback=off. Given: no driver that answers",
            code="PYSTORM_NO_STACKS",
        )
    return Stacks(runs=found)


def _newest(path: Path | None) -> Path:
    """The record file of the run that wrote last."""
    found = next(iter(Runs(path).paths().values()), None)
    if found is None:
        raise OptionError(
            f"PATH holds no records, and --output writes the page of one run: give a record file, NAME-RUN.jsonl, as a "
            f"query writes it into the folder of progress.path. Given: {str(path) if path else 'no driver that runs'}",
            code="PYSTORM_INVALID_OPTION",
        )
    return found


def _write(file: Path, page: Path) -> None:
    text = document(view_of(recorded(file), file.stem))
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(
            f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
            f"Given: {str(page)!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from None


def _serve(path: Path | None, host: str, port: int) -> None:
    page_server = _page_server()
    listener = _listener(host, port)
    token = secrets.token_urlsafe(32)  # 256 bits, in characters that are valid in an address
    typer.echo(f"http://{_authority(listener)}/{token}/")
    if not _is_loopback(listener):
        typer.echo(
            "warning: the page is not encrypted, and its address is the key to it: put a proxy with TLS before it, or "
            "listen on 127.0.0.1 and forward a port by ssh -L",
            err=True,
        )
    page_server.server_of(Runs(path), token).run(sockets=[listener])


def _page_server() -> Any:
    """Imports the module that serves the page, with the packages that it needs."""
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
