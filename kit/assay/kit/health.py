"""Asks a server how it is (grpc.health.v1)."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from assay.kit.channels import open_channel
from assay.kit.errors import ConfigError, refuse
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_LONGEST_CHECK_S = 5.0


class Health(StrEnum):
    """A service's state."""

    SERVING = "serving"
    NOT_SERVING = "not serving"
    NO_SUCH_SERVICE = "no such service"
    UNREACHABLE = "unreachable"


async def check(
    target: str | grpc.aio.Channel,
    service: str = "",
    timeout_s: float = 5.0,
    *,
    tls: ClientTls | None = None,
) -> Health:
    """Asks once. Needs no token.

    Args:
        target: the server's address, or an open channel to it, which stays open.
        service: full name of a service, as "assay.api.reward.v1.RewardService"; empty for the whole
            server.
        timeout_s: seconds to wait for the answer.
        tls: as for `open_channel`; not used with a channel.

    Returns:
        The answer; UNREACHABLE when there was none.

    Raises:
        ConfigError: the address or a TLS file is wrong.
    """
    if isinstance(target, str):
        async with open_channel(target, tls=tls) as channel:
            return await _check(channel, service, timeout_s)
    return await _check(target, service, timeout_s)


async def wait_until_serving(
    target: str | grpc.aio.Channel,
    service: str = "",
    timeout_s: float = 30.0,
    *,
    tls: ClientTls | None = None,
) -> None:
    """Asks again and again until a service serves; the arguments are those of `check`.

    Raises:
        UnavailableError: it does not serve in time; the message holds its last state.
        ConfigError: the address or a TLS file is wrong.
    """
    if isinstance(target, str):
        async with open_channel(target, tls=tls) as channel:
            await _wait(channel, service, timeout_s, f"the server at {target}")
    else:
        await _wait(target, service, timeout_s, "the server")


async def _check(channel: grpc.aio.Channel, service: str, timeout_s: float) -> Health:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # its stubs list no methods
    request = health_pb2.HealthCheckRequest(service=service)
    try:
        response = await stub.Check(request, timeout=timeout_s)
    except grpc.aio.AioRpcError as error:
        unknown = error.code() is grpc.StatusCode.NOT_FOUND
        return Health.NO_SUCH_SERVICE if unknown else Health.UNREACHABLE
    serving = response.status == health_pb2.HealthCheckResponse.SERVING
    return Health.SERVING if serving else Health.NOT_SERVING


async def _wait(channel: grpc.aio.Channel, service: str, timeout_s: float, who: str) -> None:
    ends = time.monotonic() + timeout_s
    pause_s, health = _FIRST_PAUSE_S, Health.UNREACHABLE
    while (left_s := ends - time.monotonic()) > 0:
        health = await _check(channel, service, min(left_s, _LONGEST_CHECK_S))
        if health is Health.SERVING:
            return
        await asyncio.sleep(min(pause_s, max(0.0, ends - time.monotonic())))
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
    what = f" {service}" if service else ""
    raise refuse(
        Reason.UNREACHABLE,
        f"{who} did not serve{what} within {timeout_s:g} s ({health}): "
        "start it, or correct the address",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m assay.kit.health ADDRESS`: exits 0 if the server serves, 1 if not.

    For the health checks of containers. TLS by files: --ca, and --cert with --key.
    """
    parser = argparse.ArgumentParser(prog="python -m assay.kit.health", description=__doc__)
    parser.add_argument("address", help="host:port")
    parser.add_argument("--service", default="", help="full name; empty: the server as a whole")
    parser.add_argument("--timeout-s", type=float, default=3.0, help="how long to wait")
    parser.add_argument("--ca", type=Path, help="certificates that the server's must come from")
    parser.add_argument("--cert", type=Path, help="our own certificate, for mutual TLS")
    parser.add_argument("--key", type=Path, help="its private key")
    options = parser.parse_args(arguments)
    tls = None
    if options.ca or options.cert or options.key:
        tls = ClientTls(options.ca, options.cert, options.key)
    try:
        health = asyncio.run(check(options.address, options.service, options.timeout_s, tls=tls))
    except ConfigError as error:
        parser.error(str(error))
    sys.stdout.write(f"{options.address}: {health}\n")
    return 0 if health is Health.SERVING else 1


if __name__ == "__main__":
    sys.exit(main())
