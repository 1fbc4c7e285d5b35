"""Tokens at rest, the command that makes them, who counts as loopback, and the quotas' laws."""

from __future__ import annotations

import os
import time
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.cli.commands.token import token as token_command
from assay.kit.access import Access, is_loopback
from assay.kit.errors import ConfigError
from assay.kit.quotas import Quotas
from assay.kit.tokens import Doorman, TokensFile, hash_token, new_token, parse_tokens

TENANTS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)


@given(st.lists(st.tuples(TENANTS, TOKENS), max_size=3))
def test_what_is_stored_is_read_and_holds_no_token(pairs: list[tuple[str, str]]) -> None:
    hashes = [hash_token(*pair) for pair in pairs]
    text = "# ours\n\n" + "\n".join(f"  {one.line}  # a comment" for one in hashes)
    assert parse_tokens(text) == (hashes, [])
    fresh = new_token()
    assert fresh not in hash_token("tenant", fresh).line


@given(TOKENS, st.one_of(st.none(), st.text(max_size=80), st.binary(max_size=80)))
def test_one_token_opens_and_nothing_else(token: str, offered: str | bytes | None) -> None:
    door = Doorman(token)
    assert door.tenant_of(f"Bearer {token}") == door.tenant_of(f"Bearer {token}".encode())
    assert door.tenant_of(f"Bearer {token}") == "default"
    given_ = offered.encode(errors="surrogatepass") if isinstance(offered, str) else offered
    if given_ != f"Bearer {token}".encode():
        assert door.tenant_of(given_) is None
    assert Doorman().tenant_of(offered) == ""


def test_bad_lines_are_told_by_number_alone() -> None:
    secret, good = new_token(), hash_token("a", "x").line
    lines = [secret, f"a {secret}", good, "a sha256:12", f"{good} more", f"ä {good[2:]}"]
    found, bad = parse_tokens("\n".join(lines))
    assert [one.tenant for one in found] == ["a"]
    assert bad == [1, 2, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "trouble"),
    [(None, "cannot be read: No such file"), ("", "assay token new TENANT"), ("# x", "no token"),
     ("a secret-token", r"no token \(1\)")],
)  # fmt: skip
def test_a_file_that_lets_nobody_in_is_refused(
    tmp_path: Path, text: str | None, trouble: str
) -> None:
    path = tmp_path / "tokens"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=trouble) as caught:
        TokensFile(path)
    assert "secret-token" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_change_that_keeps_size_and_date_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    old, new = new_token(), new_token()
    path.write_text(hash_token("team-a", old).line)
    os.utime(path, (1, 1))
    door = Doorman(file=TokensFile(path))
    path.write_text(hash_token("team-a", new).line)
    os.utime(path, (1, 1))  # as rsync -t, cp -p and some mounts leave it
    end_s = time.monotonic() + 15
    while door.tenant_of(f"Bearer {old}") is not None:
        assert time.monotonic() < end_s, "the old token still opens the door"
        time.sleep(0.05)
    assert door.tenant_of(f"Bearer {new}") == "team-a"


def test_the_command_stores_the_line_and_shows_the_token_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    shown = CliRunner().invoke(token_command, ["new", "team-a"])
    assert shown.exit_code == 0
    first, line = (row.split(maxsplit=1)[1] for row in shown.output.splitlines())
    assert hash_token("team-a", first).line == line
    path.write_text(line)
    path.chmod(0o640)
    stored = CliRunner().invoke(token_command, ["new", "team-b", "--file", str(path)])
    second = stored.output.strip()
    assert second not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    door = Doorman(file=TokensFile(path))
    assert door.tenant_of(f"Bearer {first}") == "team-a"
    assert door.tenant_of(f"Bearer {second}") == "team-b"
    assert first != second
    refused = CliRunner().invoke(token_command, ["new", "team a"])
    assert refused.exit_code == 1
    assert "a tenant's name is" in refused.output


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("[::1]", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("[::]", False), ("192.0.2.1", False), ("", False),
     ("no.such.host.invalid", False)],
)  # fmt: skip
def test_what_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("package", ["reward_server", "sandbox", "genrm"])
def test_every_service_takes_the_same_flags(package: str) -> None:
    command = import_module(f"assay.{package}.__main__").cli
    with command.make_context(package, ["--tenant-calls", "3"], resilient_parsing=False) as context:
        taken = {field.name: context.params[field.name] for field in fields(Access)}
    assert Access(**taken) == Access(tenant_calls=3)


@pytest.mark.parametrize("limit", ["items_per_s", "items_in_flight", "calls"])
def test_a_negative_limit_is_refused(limit: str) -> None:
    with pytest.raises(ConfigError, match=f"--tenant-{limit.replace('_', '-')} must be 0"):
        Access(**{f"tenant_{limit}": -1})  # type: ignore[arg-type]  # one of several kinds
    if limit == "items_per_s":
        with pytest.raises(ConfigError, match="finite"):
            Access(tenant_items_per_s=float("nan"))


STEPS = st.lists(
    st.tuples(st.floats(0, 5), st.sampled_from("ab"), st.integers(1, 30), st.booleans()),
    max_size=25,
)


@settings(max_examples=30)
@given(STEPS, st.floats(0.5, 20), st.integers(1, 20))
def test_no_tenant_gets_more_than_its_rate_or_its_room(
    steps: list[tuple[float, str, int, bool]], rate: float, most: int
) -> None:
    now_s = 0.0
    quotas = Quotas(rate, most, clock=lambda: now_s)
    batches: dict[str, list[int]] = {"a": [], "b": []}
    taken: dict[str, list[int]] = {"a": [], "b": []}
    for pause_s, tenant, items, answers in steps:
        now_s += pause_s
        if answers and batches[tenant]:
            quotas.give_back(tenant, batches[tenant].pop())
        wait_s = quotas.wait_s(tenant, items)
        assert wait_s >= 0
        if wait_s == 0:
            quotas.take(tenant, items)
            batches[tenant].append(items)
            taken[tenant].append(items)
        held = batches[tenant]
        assert quotas.in_flight(tenant) == sum(held)
        assert sum(held) <= most or len(held) == 1
        # One second's worth to begin with, and one batch of debt.
        assert sum(taken[tenant][:-1]) <= rate * (now_s + 1) + 1e-6
    for tenant, held in batches.items():
        while held:
            quotas.give_back(tenant, held.pop())
        now_s += quotas.wait_s(tenant, 10**6) + 1e-6
        assert quotas.wait_s(tenant, 10**6) == 0  # whatever its size, a batch passes in the end


def test_without_limits_nothing_waits() -> None:
    quotas = Quotas()
    assert not quotas.limited
    quotas.take("a", 10**9)
    assert quotas.wait_s("a", 10**9) == 0
