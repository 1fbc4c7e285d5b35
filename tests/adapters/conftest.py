"""What the tests of adapters share: real reward servers, a good one and one of each trouble.

They need the trainers themselves, which `make test-adapters` installs in an environment of its own;
elsewhere each file skips.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

if importlib.util.find_spec("nemo_gym"):
    # From 0.6 on it moves the folder that it lies in behind all others, so that packages of .venv
    # would take the place of those that trainers need. And it makes a cache where pytest began.
    _cache = os.environ.setdefault("HF_HOME", str(Path.home() / ".cache" / "huggingface"))
    os.environ.setdefault("HF_DATASETS_CACHE", str(Path(_cache) / "datasets"))
    _path = list(sys.path)
    import nemo_gym  # noqa: F401

    sys.path[:] = _path

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.trainers.common import fault_ratio
from assay.clients.trainers.common.contact import Addressee, meet
from assay.clients.trainers.common.settings import close_clients
from trainer_support import tiny_tokenizer

RIGHT, WRONG = r"so \boxed{4}", r"so \boxed{5}"


@dataclass(frozen=True)
class Trouble:
    """A way to have no judgement.

    Attributes:
        target: whom to ask.
        reference: what for.
        reason: what the fault says.
    """

    target: str
    reference: str
    reason: str


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServices]:
    with EmbeddedServices() as services:
        yield services


@pytest.fixture(scope="session")
def full_server() -> Iterator[EmbeddedServices]:
    """A server whose quota is spent for the next minutes."""
    with EmbeddedServices(arguments={"reward": ["--tenant-items-per-s", "0.001"]}) as services:
        with RewardClient(services.address) as client:
            client.score_one(Item(RIGHT, "4", task="math"))
        yield services


@pytest.fixture(scope="session")
def dead_target() -> str:
    """A server that this process met, and that was killed then."""
    with EmbeddedServices() as services, RewardClient(services.address) as client:
        for verifier, task in (("", ""), ("", "math"), ("length", "")):
            item = Item(RIGHT, "4", verifier, task or "math")
            meet(client, Addressee(services.address, verifier, task), [item])
        return services.address


@pytest.fixture
def nobody() -> str:
    """An address where no server ever was."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(params=["killed", "overloaded", "unreadable"])
def trouble(request: pytest.FixtureRequest) -> Trouble:
    """A killed server, one that is full, and a reference that nobody can read."""
    if request.param == "killed":
        return Trouble(request.getfixturevalue("dead_target"), "4", "UNREACHABLE")
    if request.param == "overloaded":
        full: EmbeddedServices = request.getfixturevalue("full_server")
        return Trouble(full.address, "4", "QUOTA_EXCEEDED")
    good: EmbeddedServices = request.getfixturevalue("server")
    return Trouble(good.address, " ", "UNUSABLE_REFERENCE")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, server: EmbeddedServices) -> pytest.MonkeyPatch:
    """The settings of a good server, as adapters without options read them."""
    monkeypatch.setenv("ASSAY_TARGET", server.address)
    monkeypatch.setenv("ASSAY_TASK", "math")
    return monkeypatch


@pytest.fixture
def troubled(environment: pytest.MonkeyPatch, trouble: Trouble) -> Trouble:
    """The same for a server that will not judge."""
    environment.setenv("ASSAY_TARGET", trouble.target)
    environment.setenv("ASSAY_TIMEOUT_S", "1.5")
    return trouble


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    fault_ratio.forget()
    yield
    close_clients()
