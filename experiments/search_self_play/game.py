"""A toy of search self-play (SSP, arXiv 2510.18821): one policy writes sums and solves them.

The proposer writes up to `LONGEST` digits; each solver says their sum modulo 8. Longer sums are
harder for the pretrained model. The proposer's reward is that of the shipped environment
`search-self-play`; what is not a sum earns nothing, and nobody solves it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.environments import Environment, EpisodeMessage, Observation, Reply
from assay.environments.shipped.self_play import ProposerReward, proposer_reward

MODULUS, LONGEST = 8, 8
_SUM = re.compile(r"([0-7]{1,8})=")


@dataclass(frozen=True, slots=True)
class SumsSettings:
    """How many solve a sum, and what its proposer earns."""

    solvers: int = 4
    reward: ProposerReward = "difficulty"


class SumsSelfPlay(Environment):
    """The proposer's turn, then one of each solver."""

    name = "sums-self-play"
    Settings = SumsSettings

    def reset(self, row: Mapping[str, Any]) -> Observation:
        self._sum = ""
        self._right: list[bool] = []
        return Observation((EpisodeMessage("user", str(row["prompt"])),), agent="proposer")

    def turn(self, turn: Reply) -> Observation | None:
        if turn.agent == "proposer":
            found = _SUM.fullmatch(turn.text.strip())
            if found is None:
                return None
            self._sum = found[1]
        else:
            right = sum(map(int, self._sum)) % MODULUS
            self._right.append(turn.text.strip() == str(right))
        if len(self._right) == self.settings.solvers:
            return None
        asked = EpisodeMessage("user", f"{self._sum}=")
        return Observation((asked,), agent=f"solver#{len(self._right) + 1}")

    def reward(self) -> Mapping[str, float]:
        if not self._right:
            return {"proposer": 0.0}
        rate = sum(self._right) / len(self._right)
        solved = {f"solver#{n}": float(one) for n, one in enumerate(self._right, start=1)}
        return {"proposer": proposer_reward(rate, self.settings.reward, 0.0, 1.0), **solved}
