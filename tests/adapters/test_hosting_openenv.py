"""The rewards of an OpenEnv environment behind our reward server, from its package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv.core", reason="see `make test-adapters`")

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.types import Turn

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

FILE = Path(__file__).with_name("hosted_openenv.py")
NAMES = ("guessing", "guessing_strictly")


def turns(*texts: str) -> list[Turn]:
    return [Turn("assistant", text, True) for text in texts]


def test_an_openenv_environments_rewards_over_turns() -> None:
    given = [word for name in NAMES for word in ("--verifier", f"{name}={FILE}:{name}")]
    given += ["--workers", "1", "--worker-memory-mb", "8192"]
    with (
        EmbeddedServices(arguments={"reward": given}) as services,
        RewardClient(services.address, timeout_s=60) as client,
    ):
        judges(client)


def judges(client: RewardClient) -> None:
    def asked(client: RewardClient, verifier: str, response: Any, **fields: Any) -> Any:
        given = {"response": response} if isinstance(response, str) else {"turns": response}
        return client.score_one(Item(verifier=verifier, **given, **fields))

    row = {"number": 3}
    assert asked(client, "guessing", "3", reference=row).reward == 1.0
    result = asked(client, "guessing", turns("1", "2", "3", "4"), reference=row)
    assert result.reward == pytest.approx(0.8)  # what follows the end is not played
    assert asked(client, "guessing", "who knows", reference=row).reward == -1.0
    assert asked(client, "guessing_strictly", "who knows").fault.reason == "UNSUPPORTED_INPUT"
    assert asked(client, "guessing", "666").fault.reason == "VERIFIER_FAILED"
    assert asked(client, "guessing", "0").fault.reason == "UNSUPPORTED_INPUT"  # no reward at all
