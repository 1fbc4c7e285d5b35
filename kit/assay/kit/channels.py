"""Channels to Assay servers.

Each has the options of limits.py, TLS if asked for, and sends with every call the bearer token and
the request id of the call in progress. A channel belongs to the event loop that was running when it
was opened, and to the process that opened it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, cast

import grpc
from grpc.experimental import ChannelOptions

from assay.kit.calls import AUTHORIZATION_KEY, METADATA_KEY, bearer, request_id_var
from assay.kit.errors import ConfigError
from assay.kit.limits import channel_options
from assay.kit.targets import Target, read_target
from assay.kit.tls import ClientTls

_log = logging.getLogger(__name__)
Metadata = tuple[tuple[str, str | bytes], ...]


def open_channel(
    target: str, *, tls: ClientTls | None = None, token: str | None = None
) -> grpc.aio.Channel:
    """Opens a channel; close it on the same event loop. Nothing is sent before the first call.

    Args:
        target: one server, as "HOST:PORT", "[IPV6]:PORT" or "unix:PATH"; or replicas, called by
            turns, as "dns:///reward:50051" or "10.0.0.1:50051,10.0.0.2:50051" (see
            `assay.kit.targets`).
        tls: None speaks plain text.
        token: sent as "authorization: Bearer TOKEN" with every call.

    Raises:
        ConfigError: the address is not understood, the token cannot be sent, or a TLS file is
            missing or unusable.
    """
    uri, options, fixed = _prepare(target, tls, token)
    if tls is None:
        inner = grpc.aio.insecure_channel(uri, options=options)
    else:
        inner = grpc.aio.secure_channel(uri, tls.credentials(), options=options)
    return _MarkedChannel(inner, fixed)


def open_blocking_channel(
    target: str, *, tls: ClientTls | None = None, token: str | None = None
) -> tuple[grpc.Channel, Metadata]:
    """Opens a channel that needs no event loop, for callers that may fork.

    Returns:
        The channel, and the metadata with the token (empty without one) to send with every call.

    Raises:
        ConfigError: as `open_channel`.
    """
    uri, options, fixed = _prepare(target, tls, token)
    # A server's stream is read without a thread of gRPC's between: 0.3 ms instead of 0.5.
    options.append((ChannelOptions.SingleThreadedUnaryStream, 1))
    if tls is None:
        return grpc.insecure_channel(uri, options=options), fixed
    return grpc.secure_channel(uri, tls.credentials(), options=options), fixed


def _prepare(
    text: str, tls: ClientTls | None, token: str | None
) -> tuple[str, list[tuple[str, int | str]], Metadata]:
    target = read_target(text)
    fixed: Metadata = () if token is None else ((AUTHORIZATION_KEY, bearer(token)),)
    options = {**dict(channel_options()), **dict(target.options)}
    if target.loopback:
        # A proxy of the environment is for the outside; asked for a loopback address it would look
        # at its own.
        options["grpc.enable_http_proxy"] = 0
    elif token is not None and tls is None:
        _log.warning("the token for %s travels in plain text: use TLS", text)
    if tls is not None:
        options.update(_names(text, target, tls))
    return target.uri, list(options.items()), fixed


def _names(text: str, target: Target, tls: ClientTls) -> dict[str, int | str]:
    if tls.server_name is not None:
        return {"grpc.ssl_target_name_override": tls.server_name}
    if target.several:
        raise ConfigError(
            f"TLS to the list {text!r} needs the name that all their certificates hold: "
            "set server_name, or write dns:///NAME:PORT"
        )
    return {}


class _MarkedChannel(grpc.aio.Channel):
    """A channel whose calls carry the token and the current request id.

    gRPC's own interceptors would put a task and a queue around every call.
    """

    def __init__(self, inner: grpc.aio.Channel, fixed: Metadata) -> None:
        self._inner = inner
        self._fixed = fixed

    async def __aenter__(self) -> _MarkedChannel:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self._marked(self._inner.unary_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return self._marked(self._inner.unary_stream(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self._marked(self._inner.stream_unary(*args, **kwargs))

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        return self._marked(self._inner.stream_stream(*args, **kwargs))

    def _marked(self, method: object) -> Callable[..., Any]:
        call = cast("Callable[..., Any]", method)

        def marked_call(*args: Any, metadata: Iterable[Any] | None = None, **kwargs: Any) -> Any:
            given: list[Any] = list(metadata or ())
            given.extend(self._fixed)
            request_id = request_id_var.get()
            if request_id and all(key != METADATA_KEY for key, _ in given):
                given.append((METADATA_KEY, request_id))
            return call(*args, metadata=tuple(given), **kwargs)

        return marked_call
