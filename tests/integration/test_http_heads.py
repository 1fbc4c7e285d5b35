"""Heads that two readers could understand in two ways, sent byte for byte: none gets in."""

from __future__ import annotations

import asyncio

from http_support import Facade, serving

BODY = b'{"items": []}'
GET = b"GET /v1/verifiers HTTP/1.1\r\nHost: localhost\r\n\r\n"
OWN_NAMES = [
    b"localhost", b"LocalHost", b"localhost:80", b"localhost:", b"127.0.0.1", b"127.0.0.1:",
    b"127.0.0.1:8080", b"[::1]", b"[::1]:8080", b"\tlocalhost\t", b"",
]  # fmt: skip
OTHER_NAMES = [
    b"evil.com", b"evil.com@localhost", b"evil.com:80@localhost:80", b"@localhost", b":@localhost",
    b"localhost:80@evil.com", b"localhost@evil.com", b"localhost.evil.com", b"localhost.",
    b"LOCALHOST.", b"evil.localhost", b"[::1]evil", b"[::1].evil.com", b"[::1", b"::1", b"[",
    b"127.0.0.1.evil.com", b"127.0.0.2", b"127.1", b"0.0.0.0", b"0", b"2130706433", b"0x7f000001",
    b"[::]", b"[::ffff:127.0.0.1]", b"localhost/evil.com", b"localhost?evil.com",
    b"localhost#evil.com", b"localhost\\evil.com", b"localhost,evil.com", b"localhost evil.com",
    b"localhost:80:80", b"localhost:x", b"localhost:-1", b"localhost:808080", b"http://localhost",
    b"loc\talhost", b"localhost%00", "\uff4cocalhost".encode(), "127\u30020.0.1".encode(), b".",
    b":80",
]  # fmt: skip
_CODED = b"Transfer-Encoding: chunked"
_1_0, _1_1 = b"1.0\r\nConnection: keep-alive", b"1.1"
UNCLEAR = {
    "both lengths": (_1_1, b"Content-Length: 13\r\n" + _CODED),
    "both, the other way round": (_1_1, _CODED + b"\r\nContent-Length: 13"),
    "chunks in HTTP/1.0": (_1_0, _CODED),
    "both lengths in HTTP/1.0": (_1_0, b"Content-Length: 13\r\n" + _CODED),
    "both, in other letters": (_1_1, b"tRANSFER-eNCODING: Chunked\r\nCONTENT-length: 0"),
    "two lengths": (_1_1, b"Content-Length: 13\r\nContent-Length: 14"),
    "two lengths in one": (_1_1, b"Content-Length: 13, 14"),
    "a signed length": (_1_1, b"Content-Length: +13"),
    "a length below zero": (_1_1, b"Content-Length: -1"),
    "a length in base 16": (_1_1, b"Content-Length: 0xd"),
    "a length with an underscore": (_1_1, b"Content-Length: 1_3"),
    "no length": (_1_1, b"Content-Length:"),
    "a list of codings": (_1_1, b"Transfer-Encoding: chunked, identity"),
    "identity": (_1_1, b"Transfer-Encoding: identity"),
    "another coding": (_1_1, b"Transfer-Encoding: gzip, chunked"),
    "two codings": (_1_1, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
    "one coding twice": (_1_1, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    "a coding with a sign": (_1_1, b"Transfer-Encoding: \x0bchunked"),
    "a space before the colon": (_1_1, b"Transfer-Encoding : chunked"),
    "a space before the other colon": (_1_1, b"Content-Length : 13"),
    "a folded coding": (_1_1, b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 13"),
    "a null": (_1_1, b"X: a\x00b"),
    "a bare carriage return": (_1_1, b"X: a\rTransfer-Encoding: chunked"),
    "two hosts": (_1_1, b"Host: localhost"),
    "two hosts, another": (_1_1, b"Host: evil.com"),
}  # fmt: skip


async def sent(facade: Facade, data: bytes) -> bytes:
    """All that comes back until the server closes."""
    host, port = facade.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        async with asyncio.timeout(5):
            return await reader.read()
    except TimeoutError:
        return b"HTTP/1.1 0 the connection stays open"
    finally:
        writer.close()


async def status(facade: Facade, *lines: bytes, head: bytes = b"GET /v1/verifiers HTTP/1.1") -> int:
    """The status of a request of these lines, after which the connection may close."""
    head = b"\r\n".join((head, *lines, b"Connection: close", b"", b""))
    return int((await sent(facade, head)).split()[1])


async def test_only_a_name_of_this_machine_is_let_in_without_a_token() -> None:
    async with serving() as facade:
        found = {name: await status(facade, b"Host: " + name) for name in OWN_NAMES}
        assert found == dict.fromkeys(OWN_NAMES, 200)
        found = {name: await status(facade, b"Host: " + name) for name in OTHER_NAMES}
        assert {name for name, code in found.items() if code not in (400, 403)} == set()


async def test_the_origin_of_a_page_is_no_user_of_its_host() -> None:
    async with serving() as facade:
        for origin in (b"http://evil.com@localhost", b"http://localhost.evil.com", b"null"):
            assert await status(facade, b"Host: localhost", b"Origin: " + origin) == 403
        assert await status(facade, b"Host: localhost", b"Origin: http://localhost") == 200


async def test_a_host_that_is_missing_or_in_the_target_is_not_taken_from_elsewhere() -> None:
    async with serving() as facade:
        assert await status(facade) == 400
        assert await status(facade, head=b"GET /v1/verifiers HTTP/1.0") == 200
        target = b"GET http://evil.com/v1/verifiers HTTP/1.1"
        assert await status(facade, b"Host: localhost", head=target) == 404


async def test_a_head_that_is_unclear_is_refused_and_its_connection_closed() -> None:
    chunked = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"
    missed = set()
    async with serving() as facade:
        for name, (version, lines) in UNCLEAR.items():
            head = b"POST /v1/score HTTP/" + version + b"\r\nHost: localhost\r\n" + lines
            for body in (BODY, chunked):
                answer = await sent(facade, head + b"\r\n\r\n" + body + GET)
                refused = answer.split()[1] in (b"400", b"501") and b"EMPTY_BATCH" not in answer
                alone = answer.count(b"HTTP/1.1 ") == 1  # nothing behind it is read as a request
                if not (refused and alone and b"connection: close" in answer.lower()):
                    missed.add(name)
    assert missed == set()


async def test_a_body_of_one_length_is_read() -> None:
    chunked = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"
    last = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    async with serving() as facade:
        for length, body in (
            (b"Content-Length: 13", BODY),
            (b"Content-Length: 13, 13", BODY),
            (b"Content-Length: 13\r\nContent-Length: 13", BODY),
            (b"Transfer-Encoding: chunked", chunked),
        ):
            head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n"
            answer = await sent(facade, head + body + last)
            assert b"EMPTY_BATCH" in answer, "it was read, to its end"
            assert answer.count(b"HTTP/1.1 ") == 2
