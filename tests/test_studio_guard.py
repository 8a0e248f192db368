"""The studio's door: no other host, no other origin, no missing token and no large body gets through."""

from __future__ import annotations

import asyncio

import pytest

from internals import Doorkeeper

PORT, TOKEN = 8099, "secret-token"
HOST = (b"host", b"127.0.0.1:8099")
COOKIE = (b"cookie", f"pibls_studio_{PORT}={TOKEN}".encode())


def asked(*headers, query=b"", kind="http", chunks=(b"",)):
    """Send a request through the door; return what came back, and whether the page was reached."""
    sent, reached = [], []

    async def page(scope, receive, send):
        body = b""
        while kind == "http":
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        reached.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})

    bodies = iter([{"type": "http.request", "body": c, "more_body": i + 1 < len(chunks)} for i, c in enumerate(chunks)])

    async def receive():
        return next(bodies)

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "headers": list(headers), "query_string": query, "path": "/"}
    asyncio.run(Doorkeeper(page, port=PORT, token=TOKEN, largest=2**20)(scope, receive, send))
    return sent, bool(reached)


def test_a_page_with_its_cookie_gets_through_and_is_told_its_limits():
    sent, reached = asked(HOST, COOKIE, (b"origin", b"http://127.0.0.1:8099"))
    assert reached
    rules = dict(sent[0]["headers"])[b"content-security-policy"].decode()
    assert "default-src 'self'" in rules
    assert "frame-ancestors 'none'" in rules
    assert "http" not in rules.replace("'self'", "")


def test_the_token_becomes_a_cookie_and_leaves_the_address():
    sent, reached = asked(HOST, query=b"token=secret-token")
    head = dict(sent[0]["headers"])
    assert (reached, sent[0]["status"], head[b"location"]) == (False, 303, b"/")
    assert b"HttpOnly; SameSite=Strict" in head[b"set-cookie"]


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([HOST], b""),
        ([HOST], b"token=wrong"),
        ([HOST, (b"cookie", b"pibls_studio_8099=wrong")], b""),
        ([HOST, (b"cookie", b"pibls_studio_8099=")], b"token="),
        ([COOKIE], b""),
        ([(b"host", b"evil.example:8099"), COOKIE], b"token=secret-token"),
        ([(b"host", b"127.0.0.1:8099.evil.example"), COOKIE], b""),
        ([(b"host", b"127.0.0.1"), COOKIE], b""),
        ([HOST, COOKIE, (b"origin", b"http://evil.example")], b""),
        ([HOST, COOKIE, (b"origin", b"null")], b""),
        ([HOST, COOKIE, (b"origin", b"https://127.0.0.1:8099")], b""),
        ([HOST, COOKIE, (b"origin", b"http://127.0.0.1:8098")], b""),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_strangers_are_refused(headers, query, kind):
    sent, reached = asked(*headers, query=query, kind=kind)
    assert not reached
    assert sent[0].get("status", sent[0].get("code")) in (403, 1008)
    assert TOKEN.encode() not in repr(sent).encode()


def test_bodies_are_measured_as_announced_and_as_they_come():
    _, reached = asked(HOST, COOKIE, chunks=[b"x" * 2**19, b"y" * 2**18])
    assert reached
    for headers, chunks in (
        ([(b"content-length", b"100000000")], [b""]),
        ([(b"content-length", b"-1")], [b""]),
        ([(b"content-length", b"5")], [b"x" * 2**18] * 8),
        ([], [b"x" * 2**18] * 8),
    ):
        sent, reached = asked(HOST, COOKIE, *headers, chunks=chunks)
        assert not reached
        assert sent[0]["status"] == 413
        assert b"1 MiB" in sent[1]["body"]
