"""Who may speak with the studio: programs on this machine that know its token, and pages that it has served itself."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_RULES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _RULES.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Doorkeeper:
    """An ASGI application around another: it refuses other hosts, other origins, no token, and bodies too large."""

    def __init__(self, app: Any, *, port: int, token: str, largest: int) -> None:
        self.app, self.token, self.largest = app, token, largest
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"pibls_studio_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, and pass on any other."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {key.lower(): value.decode("latin-1") for key, value in scope.get("headers", [])}
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        given = query.get("token", [""])[0]
        if words := self.refusal(headers, given):
            await _refuse(scope, send, 403, words)
        elif given and scope["type"] == "http":
            await self._welcome(send)
        elif scope["type"] == "http":
            await self._within(scope, receive, send, headers)
        else:
            await self.app(scope, receive, send)

    def refusal(self, headers: MutableMapping[bytes, str], given: str) -> str:
        """Say why a request is refused; an empty text if it is not."""
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if host not in self.hosts:
            return "The studio answers on this machine only, under its own address."
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return "The studio answers its own pages only."
        known = [given, _cookie(headers.get(b"cookie", ""), self.cookie)]
        if not any(secrets.compare_digest(own.encode(), self.token.encode()) for own in known):
            return "The token is missing. Open the address that pibls studio has printed."
        return ""

    async def _welcome(self, send: Send) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        head = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store"), *_HEADERS]
        await send({"type": "http.response.start", "status": 303, "headers": head})
        await send({"type": "http.response.body", "body": b""})

    async def _within(self, scope: Scope, receive: Receive, send: Send, headers: MutableMapping[bytes, str]) -> None:
        """Pass on a request whose body is not too large."""
        # A form has some bytes around its file.
        most, seen, begun = self.largest + 2**16, 0, False
        words = f"The file has more than {self.largest // 2**20} MiB, which is the most that the studio takes."
        announced = headers.get(b"content-length", "0")
        if not announced.isdigit() or int(announced) > most:
            await _refuse(scope, send, 413, words)
            return

        async def counted() -> MutableMapping[str, Any]:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise _TooLargeError
            return message

        async def dressed(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            await self.app(scope, counted, dressed)
        except _TooLargeError:
            if not begun:
                await _refuse(scope, send, 413, words)


class _TooLargeError(Exception):
    """A body was longer than it may be."""


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refuse(scope: Scope, send: Send, status: int, words: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": words[:100]})
        return
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": words.encode()})
