"""One stack for all tests of this folder: built, up and healthy; taken down at the end."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator

import pytest

from assay.clients import RewardClient
from assay.clients.execution import ExecutionClient
from compose_support import Stack, free_port, missing
from genrm_support import make_model


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/compose/" in item.path.as_posix():
            item.add_marker(pytest.mark.docker)
            item.add_marker(pytest.mark.timeout(4500))  # the first builds the images


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("stack")
    for file in make_model(folder / "models" / "tiny").iterdir():
        file.chmod(0o644)  # safetensors writes weights for their owner alone
    token, sandbox_token, genrm_token = (secrets.token_urlsafe(16) for _ in range(3))
    made = Stack(
        f"assaytest{os.getpid()}", folder, free_port(), token, sandbox_token, "tiny=/models/tiny"
    )
    made.prepare(genrm_token)
    began_s = time.monotonic()
    made.build()
    built_s = time.monotonic()
    try:
        made.up()
        print(
            f"\nimages built in {built_s - began_s:.0f} s,",
            f"stack healthy after {time.monotonic() - built_s:.0f} s more",
        )
        yield made
    finally:
        made.down()
        assert made.left() == []


@pytest.fixture(scope="session")
def client(stack: Stack) -> Iterator[RewardClient]:
    with RewardClient(stack.target, token=stack.token, timeout_s=120.0) as client:
        client.wait_ready()
        yield client


@pytest.fixture
def sandbox(stack: Stack) -> Iterator[ExecutionClient]:
    """Straight to the sandbox, past the reward server."""
    with (
        stack.relay("sandbox", 50052) as address,
        ExecutionClient(address, token=stack.sandbox_token, timeout_s=240.0) as client,
    ):
        yield client
