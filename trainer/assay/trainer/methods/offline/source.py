"""A source of responses that were drawn and judged before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.kit.errors import ConfigError
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.offline.stored import Stored, better_by, groups_of, pairs_of
from assay.trainer.rollouts.sharing import dealt, spread
from assay.trainer.rollouts.types import Collected, Group, Ranks, Rollout, Then, nothing_more
from assay.trainer.settings.config import Config

BEFORE = -1
"""The policy step of what was drawn before the run."""


class StoredSource:
    """Gives a step's groups from the rows, pass after pass, in an order fixed by the data's seed.

    Every process holds the rows and takes the same groups.

    It gives nothing before `open`.
    """

    def __init__(self, config: Config, ranks: Ranks) -> None:
        self._config, self._ranks = config, ranks
        self._cursor = 0
        self._passes: dict[int, list[tuple[int, ...]]] = {}

    def open(self, stored: Stored) -> None:
        """Takes the rows.

        Raises:
            ConfigError: they make no group.
        """
        self._stored = stored
        self._digest = stored.digest
        offline = self._config.method.offline
        self._pairs = [
            pairs_of(
                stored, group, better_by(offline.pairs), margin=offline.margin, ties=offline.ties
            )
            if offline.pairs
            else []
            for group in stored.groups
        ]
        self._size = len(self._pass(0))
        if not self._size:
            size = self._config.rollout.group_size
            what = f"pair that differs in {offline.pairs}" if offline.pairs else f"group of {size}"
            raise ConfigError(
                f"method.offline.rows holds no {what} among responses to one prompt: "
                f"{stored.summary(offline.rows)}"
            )

    def _pass(self, number: int) -> list[tuple[int, ...]]:
        if number not in self._passes:
            made = groups_of(self._stored, self._config, number, self._pairs)
            self._passes = {**dict(list(self._passes.items())[-1:]), number: made}
        return self._passes[number]

    def group(self, number: int) -> tuple[int, ...]:
        """Places of the responses of the group of this number."""
        one_pass, rest = divmod(number, self._size)
        return self._pass(one_pass)[rest]

    def used(self, count: int) -> list[int]:
        """Places of all responses in the first `count` groups, ascending."""
        return sorted({place for number in range(count) for place in self.group(number)})

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source."""
        del policy_step
        wanted = self._config.rollout.prompts_per_step
        numbers = range(self._cursor, self._cursor + wanted)
        known = spread([self._rollouts(number) for number in numbers], self._ranks)
        collected = Collected(
            groups=dealt(known, self._ranks),
            judged=[one for group in known for one in group],
            metrics={
                "stored_passes": (self._cursor + wanted) / self._size,
                "generated_per_used": 0.0,
            },
        )
        then(collected)
        self._cursor += wanted
        return collected

    def _rollouts(self, number: int) -> Group:
        return tuple(
            self._rollout(number, index, place) for index, place in enumerate(self.group(number))
        )

    def _rollout(self, number: int, index: int, place: int) -> Rollout:
        one, told = self._stored.responses[place], self._stored.reference.get(place)
        logprobs = None if told is None else tuple(told.tolist())
        return Rollout(
            Request(Draw(number, one.problem, one.prompt_ids), index),
            Response(one.ids, one.text, logprobs, one.truncated),
            one.result,
            BEFORE,
        )

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        return {"cursor": self._cursor, "digest": self._digest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source."""
        if state["digest"] != self._digest:
            raise ConfigError(
                "the checkpoint was made with other stored rollouts than "
                f"{self._config.method.offline.rows} holds now; resume with those, or start a new "
                "run"
            )
        self._cursor = state["cursor"]
