"""The parts of assay.kit that need no wire: request ids, tokens, logs, addresses, statuses."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator

import grpc
import pytest
from google.rpc import status_pb2

from assay.kit.calls import accept_request_id, add_log_fields, bearer, begin_call, request_id_var
from assay.kit.channels import open_channel
from assay.kit.errors import (
    ConfigError,
    call_error,
)
from assay.kit.limits import MAX_MESSAGE_BYTES, channel_options, server_options
from assay.kit.log_format import WORKER_FLAG, worker_flags
from assay.kit.logs import setup_logging
from assay.kit.targets import read_target
from assay.kit.tls import ClientTls


@pytest.mark.parametrize("sane", ["a", "7", "0b5e-AF.x:9_", "x" * 128])
def test_a_sane_request_id_is_kept(sane: str) -> None:
    assert accept_request_id(sane) == sane


@pytest.mark.parametrize("odd", [None, "", "-a", "a b", "x" * 129, "a\n", "ä", '{"a":1}', b"bytes"])
def test_an_odd_request_id_is_replaced(odd: str | bytes | None) -> None:
    made = accept_request_id(odd)
    assert re.fullmatch(r"[0-9a-f]{32}", made)
    assert made != accept_request_id(odd)


@pytest.mark.parametrize("token", ["", "a b", "a\n", "ä", "x" * 5000])
def test_a_token_that_cannot_travel_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bearer(token)
    assert not token or token not in str(caught.value)


def test_log_fields_outside_a_call_go_nowhere() -> None:
    add_log_fields(items=3)


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root, chatty = logging.getLogger(), [logging.getLogger(name) for name in ("grpc", "asyncio")]
    before = list(root.handlers), root.level, [logger.level for logger in chatty]
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    for logger, level in zip(chatty, before[2], strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("logging_restored")
def test_json_logs_are_one_object_a_line_with_the_request_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logging("info", json=True)
    begin_call("call-1")
    try:
        logging.getLogger("x").info("hello %s", "you\nthere", extra={"fields": {"items": 3}})
        logging.getLogger("x").debug("not shown")
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("x").exception("broken", extra={"fields": {"odd": {1}, "level": 0}})
    finally:
        request_id_var.set("")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["message"] == "hello you\nthere"
    assert (first["level"], first["logger"], first["items"]) == ("INFO", "x", 3)
    assert first["request_id"] == second["request_id"] == "call-1"
    assert first["pid"] == os.getpid()
    assert worker_flags() == [WORKER_FLAG]
    assert "ValueError: why" in second["exception"]
    assert (second["odd"], second["level"]) == ("{1}", "ERROR")


@pytest.mark.usefixtures("logging_restored")
def test_text_logs_show_fields_and_set_up_twice_writes_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logging("DEBUG", json=True)
    setup_logging("DEBUG")
    logging.getLogger("x").debug("hello", extra={"fields": {"items": 3}})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("DEBUG   x: hello items=3")


def test_an_unknown_level_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'loud'.*DEBUG, INFO"):
        setup_logging("loud")


@pytest.mark.parametrize(
    "target", ["", "localhost", "localhost:", ":50051", "host:http", "host:0", "host:65536"]
)
def test_an_address_without_a_port_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        open_channel(target)


@pytest.mark.parametrize("target", ["http://127.0.0.1:50051", "grpc://h:1", "https://h:1,i:2"])
def test_a_url_is_no_address(target: str) -> None:
    with pytest.raises(ConfigError, match=r"URL; write HOST:PORT|write IP:PORT,IP:PORT"):
        read_target(target)


@pytest.mark.parametrize(
    ("text", "uri", "loopback"),
    [
        ("10.0.0.1:1", "10.0.0.1:1", False),
        ("unix:/run/reward", "unix:/run/reward", True),
        ("dns:///reward:50051", "dns:///reward:50051", False),
        ("10.0.0.1:1, 10.0.0.2:1", "ipv4:10.0.0.1:1,10.0.0.2:1", False),
        ("127.0.0.1:1,127.0.0.1:2", "ipv4:127.0.0.1:1,127.0.0.1:2", True),
        ("127.0.0.1:1,10.0.0.2:1", "ipv4:127.0.0.1:1,10.0.0.2:1", False),
        ("[::1]:1,[fd00::2]:1", "ipv6:[::1]:1,[fd00::2]:1", False),
    ],
)
def test_addresses_are_understood(text: str, uri: str, loopback: bool) -> None:
    target = read_target(text)
    assert (target.uri, target.loopback) == (uri, loopback)
    by_turns = "round_robin" in str(dict(target.options).get("grpc.service_config"))
    assert by_turns == ("," in text or text.startswith("dns:"))
    assert target.several == ("," in text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("10.0.0.1:1,reward:1", "'reward:1' in a list.*dns:///NAME:PORT"),
        ("10.0.0.1:1,10.0.0.2", "'10.0.0.2' is not HOST:PORT"),
        ("10.0.0.1:1,", "'' is not HOST:PORT"),
        ("10.0.0.1:1,10.0.0.1:1", "twice"),
        ("10.0.0.1:1,[::1]:1", "mixes IPv4 and IPv6"),
        ("dns:///a:1,b:1", "begins with a scheme"),
    ],
)
def test_a_list_that_cannot_be_followed_is_refused(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        read_target(text)


async def test_tls_to_a_list_needs_the_name_of_its_certificates() -> None:
    listed = "10.0.0.1:1,10.0.0.2:1"
    with pytest.raises(ConfigError, match="server_name"):
        open_channel(listed, tls=ClientTls())
    await open_channel(listed, tls=ClientTls(server_name="reward.example")).close()


async def test_a_token_in_plain_text_is_warned_of_but_not_on_loopback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for target in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/nowhere", "dns:///127.0.0.1:1"):
        await open_channel(target, token="secret").close()
    assert not caplog.records
    await open_channel("reward.example:1", token="secret").close()
    (record,) = caplog.records
    assert "plain text" in record.getMessage()
    assert "secret" not in record.getMessage()


def test_both_ends_have_the_same_limits() -> None:
    server, channel = dict(server_options()), dict(channel_options())
    for side in ("receive", "send"):
        key = f"grpc.max_{side}_message_length"
        assert server[key] == channel[key] == MAX_MESSAGE_BYTES
    for key in ("grpc.max_metadata_size", "grpc.absolute_max_metadata_size"):
        assert server[key] == channel[key]


def test_a_status_of_another_maker_is_understood() -> None:
    error = call_error(status_pb2.Status(code=999, message="?"))
    assert (error.code, error.reason) == (grpc.StatusCode.UNKNOWN, "UNKNOWN")
