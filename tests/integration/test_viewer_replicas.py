"""Journals of several real servers, behind the operator's token, become journals here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assay.kit.access import Access
from assay.kit.serving import ServeConfig
from assay.kit.tokens import hash_token
from assay.viewer.journals.reader import Reader
from assay.viewer.mirror import Mirrors
from http_support import Facade, basic, item, serving
from waiting_support import until


def records(path: Path) -> list[dict[str, Any]]:
    with Reader(path) as reader:
        return list(reader.each())


async def score(facade: Facade, journal: Path, count: int) -> None:
    """Scores items and waits until they are kept."""
    items = [item("42", item_id=f"{facade.address}/{n}") for n in range(count)]
    answer = await facade.post("/v1/score", {"items": items})
    assert answer.status == 200
    await until(
        lambda: (
            sum(record["item_id"].startswith(facade.address) for record in records(journal))
            >= count
        )
    )


@pytest.mark.slow
async def test_two_servers_are_read_as_one(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(hash_token("default", "tenants").line + "\n")
    serve = ServeConfig(access=Access(tokens_file=tokens), token="operators")
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    async with serving(serve=serve, journal=first) as a, serving(serve=serve, journal=second) as b:
        urls = [f"http://{one.address}/journal" for one in (a, b)]
        for facade, journal, count in ((a, first, 7), (b, second, 3)):
            facade.headers = {"authorization": basic("operators")}
            await score(facade, journal, count)
        said: list[str] = []
        followed = Mirrors(urls, tmp_path / "mirrors", "operators", say=said.append)
        while await asyncio.to_thread(followed.fetch):
            pass
        found = sorted((records(path) for path in followed.folder.glob("*.sqlite")), key=len)
        assert found == sorted((records(first), records(second)), key=len)
        assert said == []
        for token in ("tenants", "nobody's", None):
            told: list[str] = []
            refused = Mirrors(urls, tmp_path / f"for {token}", token, say=told.append)
            assert await asyncio.to_thread(refused.fetch) == -1
            assert len(told) == 2
            assert all("--token-file" in line for line in told)
            assert not any(records(path) for path in refused.folder.glob("*.sqlite"))
        for below in ("", "entries?after=0", "api/sources", "export", "events", "api/notes"):
            answer = await a.get(f"/journal/{below}", authorization=basic("tenants"))
            assert answer.status == 403, below
        out = await a.get("/journal/logout")
        assert (out.status, "Basic" in out.headers["www-authenticate"]) == (401, True)
        assert (await a.get("/journal/entries?after=-1")).status == 400
    # They have gone: what they said stays, and that is said once.
    assert await asyncio.to_thread(followed.fetch) == -1
    assert await asyncio.to_thread(followed.fetch) == -1
    assert len(said) == 2
    kept = [len(records(path)) for path in followed.folder.glob("*.sqlite")]
    assert sorted(kept) == sorted(len(records(path)) for path in (first, second))
