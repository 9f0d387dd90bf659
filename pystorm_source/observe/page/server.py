"""The page over HTTP: it only serves addresses that begin with the token."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from pystorm_source.observe.page.document import document, policy
from pystorm_source.observe.page.runs import Runs

LONGEST_RUN = 16
"""Characters of a run's id."""

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def application(runs: Runs, token: str) -> "Guarded":
    """The ASGI application: the page at ``/TOKEN/``, what it asks for at ``/TOKEN/view`` and
    ``/TOKEN/stacks``, and nothing else."""

    async def page(request: Request) -> Response:
        text = await run_in_threadpool(lambda: document(runs.view(_run(request)), poll="view"))
        frames = f"{policy(connects=True)}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": frames})

    async def view(request: Request) -> Response:
        data = await run_in_threadpool(lambda: runs.view(_run(request)).to_json())
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers={**HEADERS, "ETag": tag})
        return Response(data, media_type="application/json", headers={**HEADERS, "ETag": tag})

    async def stacks(request: Request) -> Response:
        return PlainTextResponse(await run_in_threadpool(lambda: runs.stacks(_run(request))), headers=HEADERS)

    given = {"/": page, "/view": view, "/stacks": stacks}
    routes = [Route(path, answer, methods=["GET"]) for path, answer in given.items()]
    return Guarded(Starlette(routes=routes), token)


def _run(request: Request) -> str:
    return request.query_params.get("run", "")[:LONGEST_RUN]


class Guarded:
    """Lets requests through if their path begins with the token, byte for byte, and strips it; answers all others with
    404."""

    def __init__(self, inner: Starlette, token: str):
        self._inner = inner
        self._token = token.encode()

    def admits(self, scope: Mapping[str, Any]) -> bool:
        """Whether a request has the token."""
        return self._rest(scope) is not None

    def _rest(self, scope: Mapping[str, Any]) -> bytes | None:
        """The path after the token; None without it."""
        # Not the decoded path: a token has one spelling.
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        _, token, rest = ([*raw.split(b"?")[0].split(b"/", 2), b"", b""])[:3]
        return rest if hmac.compare_digest(token, self._token) and raw.count(b"/") == 2 else None

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """ASGI's entry point."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        rest = self._rest(scope)
        if scope["type"] != "http" or rest is None:
            answer = PlainTextResponse("not found\n", 404, headers=HEADERS)
            if scope["type"] == "http":
                await answer(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        inner = {**scope, "path": f"/{rest.decode('ascii', 'replace')}", "raw_path": b"/" + rest}
        await self._inner(inner, receive, send)
