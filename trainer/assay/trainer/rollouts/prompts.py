"""The stream of prompts: problem after problem, without end, the same on every process.

Pass after pass over all problems, each pass in an order of its own that the seed fixes. So the
order of n draws is the beginning of the order of more: a run that is resumed, or resumed for
longer, goes on where it was. A step takes as many draws as it needs, and their count is all there
is to save.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from assay.rpc.errors import ConfigError
from assay.trainer.data import Problem
from assay.trainer.rollouts.types import Draw

# Above so many problems, only the longest are encoded before the run, and the latest are kept.
_CHECKED = 20_000
_KEPT_PASSES = 4


class PromptStream:
    """Draws problems; not thread-safe.

    Args:
        problems: what is drawn; at least one.
        encode: the rendered prompt of a problem, as tokens; pure.
        seed: of the order.
        max_prompt_tokens: the longest prompt that leaves room for a response in the policy's
            context; 0 for no limit.

    Raises:
        ConfigError: there are no problems.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        encode: Callable[[Problem], Sequence[int]],
        *,
        seed: int,
        max_prompt_tokens: int = 0,
    ) -> None:
        if not problems:
            raise ConfigError("there are no training problems; give more data")
        self._problems = tuple(problems)
        self._encode = encode
        self._seed = seed
        self._max_prompt_tokens = max_prompt_tokens
        self._cursor = 0
        self._digest = ""
        self._prompt_ids = lru_cache(maxsize=_CHECKED)(self._encoded)
        self._pass = lru_cache(maxsize=_KEPT_PASSES)(self._shuffled)

    @property
    def cursor(self) -> int:
        """The number of the next draw; so many have been taken."""
        return self._cursor

    def take(self, count: int) -> list[Draw]:
        """The next draws, in order.

        Raises:
            ConfigError: a prompt is longer than the limit, or empty.
        """
        draws = [self.draw(number) for number in range(self._cursor, self._cursor + count)]
        self._cursor += count
        return draws

    def give_back(self, count: int) -> None:
        """The latest `count` draws have not been used: they come again.

        Raises:
            ValueError: so many have not been taken.
        """
        if not 0 <= count <= self._cursor:
            raise ValueError(f"{count} draws cannot be given back: {self._cursor} were taken")
        self._cursor -= count

    def draw(self, number: int) -> Draw:
        """The draw of this number, whether it was taken or not; the cursor stays.

        Raises:
            ConfigError: its prompt is longer than the limit, or empty.
        """
        one_pass, place = divmod(number, len(self._problems))
        chosen = self._pass(one_pass)[place]
        return Draw(number, self._problems[chosen], self._prompt_ids(chosen))

    def check(self) -> None:
        """Encodes the problems once, so that a prompt that does not fit shows before the training.

        Of more than 20,000 problems it takes the 20,000 with the longest texts, which keeps the
        start of a run within seconds; any other is checked when it is first drawn.

        Raises:
            ConfigError: a prompt is longer than the limit, or empty.
        """
        places: Iterable[int] = range(len(self._problems))
        if len(self._problems) > _CHECKED:
            longest_first = sorted(places, key=lambda n: -_text_length(self._problems[n]))
            places = longest_first[:_CHECKED]
        for place in places:
            self._prompt_ids(place)

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is and what it draws from, as plain values."""
        return {"cursor": self._cursor, **self._fingerprint()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where a stream over the same problems was.

        Raises:
            ConfigError: it was a stream over others, or in another order.
        """
        for name, mine in self._fingerprint().items():
            if state[name] != mine:
                raise ConfigError(
                    "the checkpoint was made with other training data: "
                    f"{state['problems']} problems in the order of data.seed {state['seed']}, this "
                    f"run has {len(self._problems)} in that of {self._seed}"
                    + (", and they differ" if name == "digest" else "")
                    + "; resume with the data and data.seed it was made with, or start a new run"
                )
        self._cursor = state["cursor"]

    def _fingerprint(self) -> dict[str, Any]:
        if not self._digest:
            digest = hashlib.sha256()
            for problem in self._problems:
                told: tuple[object, ...] = (problem.id, problem.messages, problem.reference)
                told += tuple(extra for extra in (problem.anchor, problem.tests) if extra)
                digest.update(repr(told).encode())
            self._digest = digest.hexdigest()
        return {"problems": len(self._problems), "seed": self._seed, "digest": self._digest}

    def _shuffled(self, one_pass: int) -> list[int]:
        order = list(range(len(self._problems)))
        random.Random(f"{self._seed}-{one_pass}").shuffle(order)  # noqa: S311  # no secret
        return order

    def _encoded(self, place: int) -> tuple[int, ...]:
        problem = self._problems[place]
        ids = tuple(self._encode(problem))
        if not ids:
            raise ConfigError(
                f"the prompt of problem {problem.id} has no tokens; check data.template and the "
                "tokenizer's chat template"
            )
        if 0 < self._max_prompt_tokens < len(ids):
            raise ConfigError(
                f"the prompt of problem {problem.id} has {len(ids)} tokens, but the model's context"
                f" leaves {self._max_prompt_tokens} beside rollout.max_new_tokens; lower "
                "rollout.max_new_tokens, take out the problem, or use a model with a longer context"
            )
        return ids


def _text_length(problem: Problem) -> int:
    return sum(len(content) for _, content in problem.messages)
