"""The judges' own service is killed behind the reward server: what they should judge is held."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from assay.clients import EmbeddedServices
from assay.trainer.core.rewards import Judge, open_judge
from assay.trainer.settings.sections import RewardConfig
from genrm_service import UNTESTED
from genrm_support import make_model
from rollouts_scoring_support import request, response

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TEXTS = ("It is 1.", "It is 2.", "1", "Nobody knows.")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


def judges(model: Path, port: int) -> EmbeddedServices:
    """A service of judges at this port, not started yet."""
    return EmbeddedServices(
        ("genrm",),
        arguments={"genrm": [*UNTESTED, "--model", f"tiny={model}"]},
        ports={"genrm": port},
        start_timeout_s=120.0,
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def rewards(judge: Judge) -> list[float | None]:
    with judge.open_round(len(TEXTS)) as scoring:
        for number, text in enumerate(TEXTS):
            scoring.submit(request(0, number), response(text))
        return [result.reward for result in scoring.results()]


@pytest.mark.parametrize("verifier", ["judge", "judge-group"])
def test_judges_that_are_restarted_say_what_they_would_have_said(
    model: Path, verifier: str
) -> None:
    """Single responses, and a group whose members are judged against one another."""
    port = free_port()
    first, second = judges(model, port), judges(model, port)
    said: list[str] = []

    def restart(line: str) -> None:
        if not said:
            second.start()
        said.append(line)

    flags = ["--genrm-target", f"127.0.0.1:{port}", "--cache-entries", "0"]
    with EmbeddedServices(arguments={"reward": flags}) as server, ExitStack() as ends:
        ends.callback(first.stop)
        ends.callback(second.stop)
        first.start()
        config = RewardConfig(
            target=server.address,
            verifier=verifier,
            parameters={"seed": 7},  # letters are drawn anew for each call without one
            timeout_s=2.0,
            max_outage_s=240.0,
        )
        with open_judge(config) as judge:
            calm = rewards(judge)
            judge.patience.say = restart
            os.killpg(first.pid("genrm"), signal.SIGKILL)
            troubled = rewards(judge)
    assert None not in calm
    assert troubled == pytest.approx(calm, abs=1e-9)  # batches of other shapes round otherwise
    assert len(said) == 2
    assert said[1].endswith(f"; {len(TEXTS)} responses asked again")
