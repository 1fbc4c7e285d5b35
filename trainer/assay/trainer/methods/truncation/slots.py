"""Truncated rollouts: slots that draw a window of tokens a step, and are refilled as they end.

T-PPO (arXiv 2506.15050). A step waits for its longest response, while most have long ended. Here
it waits for a window: N = prompts * samples slots each hold one response; in each step every slot
draws at most `window` further tokens, reading what it has under the weights of now; what ended, by
itself or at max_new_tokens, is judged, and its slot goes to the next sample of the stream. What did
not end keeps its slot.

* Slots are in order, and take samples in the order of the stream: the next sample of the prompt at
  hand, else the first of the next prompt. Members of a group may end in different steps.
* Every process holds all slots and generates for its share; what came back is gathered, so that all
  agree. Every slot draws in every step: all processes have equally much to do.
* Each token keeps its sampler's log-probability and the policy that drew it.
* With a window of max_new_tokens and more, a step is the step of a Collector without dynamic
  sampling.

Numbered differences from the paper, whose text was not at hand: (1) the order of slots and refills
is a derivation; (2) a response at max_new_tokens without an end is finished, and judged as one that
was cut; (3) what is unfinished when the run ends is dropped, its tokens have been trained on.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients import Result
from assay.rpc.errors import ConfigError
from assay.trainer.engines.types import Draw, Generator, Request, Response
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import (
    Collected,
    Ranks,
    Rollout,
    ScoringRound,
    Stretch,
    Unfinished,
)
from assay.trainer.settings.sections import RolloutConfig

# What one process tells the others of a slot: no result where the response goes on.
_Told = tuple[Response, Result | None]


@dataclass(frozen=True, slots=True)
class Slot:
    """A response that is being drawn.

    Attributes:
        draw: what is asked.
        index: of the sample.
        response: as far as it is, not finished; None before its first token.
        versions: who drew it: (optimizer steps that the policy had made, tokens), in order; the
            tokens add up to the response's.
    """

    draw: Draw
    index: int
    response: Response | None = None
    versions: tuple[tuple[int, int], ...] = ()

    @property
    def tokens(self) -> int:
        """Drawn so far."""
        return len(self.response.ids) if self.response is not None else 0


class SlotCollector:
    """Collects the stretches of one step after another; a trainer.Source.

    Args:
        stream: of prompts; its cursor is moved by this collector only, and saved with it.
        generator: the policy; takes requests that go on.
        open_round: begins the judging of one step's finished responses.
        config: sizes of a step.
        window: most tokens that a slot draws in a step, at least 1.
        ranks: the processes; their count divides `prompts_per_step`.
        clock: seconds.
    """

    def __init__(
        self,
        stream: PromptStream,
        generator: Generator,
        open_round: Callable[[], ScoringRound],
        *,
        config: RolloutConfig,
        window: int,
        ranks: Ranks,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = stream
        self._generator = generator
        self._open_round = open_round
        self._config = config
        self._window = window
        self._ranks = ranks
        self._clock = clock
        count = config.prompts_per_step * config.group_size
        self._slots: tuple[Slot | None, ...] = (None,) * count
        self._queue: tuple[Slot, ...] = ()

    def collect(self, policy_step: int) -> Collected:
        """What every slot brings to the next step.

        If it raises, the collector is as it was before the call.

        Args:
            policy_step: optimizer steps that the policy has made.

        Raises:
            ConfigError: a prompt does not fit the policy's context.
        """
        start, queue = self._stream.cursor, self._queue
        try:
            return self._collect(policy_step, start)
        except BaseException:
            self._stream.give_back(self._stream.cursor - start)
            self._queue = queue
            raise

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, in plain containers."""
        return {
            "stream": self._stream.state_dict(),
            "slots": [None if slot is None else slot_to_plain(slot) for slot in self._slots],
            "queue": [slot_to_plain(slot) for slot in self._queue],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where a collector with the same data was.

        Raises:
            ConfigError: the data, or the number of slots, is not the same, or what is unfinished
                has rollout.max_new_tokens already.
        """
        saved = state.get("slots")
        if saved is None or len(saved) != len(self._slots):
            raise ConfigError(
                f"the checkpoint holds {'no' if saved is None else len(saved)} slots, this run has "
                f"{len(self._slots)}: resume with the rollout.prompts_per_step, rollout.group_size "
                "and method.truncation it was made with, or start a new run"
            )
        most = max((len(one["ids"]) for one in saved if one is not None), default=0)
        limit = self._config.max_new_tokens
        if most >= limit:
            raise ConfigError(
                f"the checkpoint holds an unfinished response of {most} tokens, which "
                f"rollout.max_new_tokens = {limit} does not allow to go on; raise it"
            )
        self._stream.load_state_dict(state["stream"])
        draw = self._stream.draw
        self._slots = tuple(None if one is None else slot_from_plain(one, draw) for one in saved)
        self._queue = tuple(slot_from_plain(one, draw) for one in state["queue"])

    def _collect(self, policy_step: int, start: int) -> Collected:
        slots = [slot or self._next() for slot in self._slots]
        told, generate_s, wait_s = self._answered(deal(slots, self._ranks))
        stretches = [
            _stretch(slot, *one, policy_step)
            for slot, one in zip(slots, self._ranks.gather(told), strict=True)
        ]
        self._slots = tuple(map(_left, slots, stretches))
        rows = [stretch.row for stretch in stretches]
        return Collected(
            groups=[],
            judged=[row for row in rows if isinstance(row, Rollout)],
            metrics={
                "draws": float(self._stream.cursor - start),
                "rounds": 1.0,
                **self._metrics(slots, stretches),
            },
            generate_s=generate_s,
            wait_s=wait_s,
            stretches=deal(stretches, self._ranks),
        )

    def _next(self) -> Slot:
        """A slot with the next sample of the stream."""
        if not self._queue:
            [draw] = self._stream.take(1)
            self._queue = tuple(Slot(draw, index) for index in range(self._config.group_size))
        first, *rest = self._queue
        self._queue = tuple(rest)
        return first

    def _answered(self, slots: Sequence[Slot]) -> tuple[list[_Told], float, float]:
        """What this process's slots drew, judged where finished; seconds of both."""
        requests = [Request(slot.draw, slot.index, slot.response, self._window) for slot in slots]
        scoring = self._open_round()
        submitted: list[int] = []

        def on_finished(place: int, response: Response) -> None:
            if response.finished:
                submitted.append(place)
                scoring.submit(Request(slots[place].draw, slots[place].index), response)

        began = self._clock()
        responses = self._generator.generate(requests, on_finished)
        generated = self._clock()
        results = dict(zip(submitted, scoring.results(), strict=True))
        told = [(response, results.get(place)) for place, response in enumerate(responses)]
        return told, generated - began, self._clock() - generated

    def _metrics(self, slots: Sequence[Slot], stretches: Sequence[Stretch]) -> dict[str, float]:
        drawn = [stretch.drawn for stretch in stretches]
        going = [slot for slot in self._slots if slot is not None]
        metrics = {
            "generated_tokens": float(sum(drawn)),
            "finished_share": 1 - len(going) / len(slots),
            "tokens_per_decode_step": sum(drawn) / self._decode_steps(drawn),
            "prefix_tokens": float(sum(slot.tokens for slot in slots)),
        }
        if going:
            ages = [float(len(slot.versions)) for slot in going]
            metrics |= {"slot_age_mean": statistics.fmean(ages), "slot_age_max": max(ages)}
        return metrics

    def _decode_steps(self, drawn: Sequence[int]) -> int:
        """Forward passes that drew tokens: of each batch the longest, of the slowest process."""
        share = len(drawn) // self._ranks.count
        size = self._config.batch or share
        return max(
            sum(
                max(drawn[at : min(at + size, own + share)]) for at in range(own, own + share, size)
            )
            for own in range(0, len(drawn), share)
        )


def _stretch(slot: Slot, response: Response, result: Result | None, policy_step: int) -> Stretch:
    request, drawn = Request(slot.draw, slot.index), len(response.ids) - slot.tokens
    if result is None:
        return Stretch(Unfinished(request, response, policy_step), drawn)
    return Stretch(Rollout(request, response, result, policy_step), drawn)


def _left(slot: Slot, stretch: Stretch) -> Slot | None:
    """The slot after a step; None where it is free."""
    row = stretch.row
    if isinstance(row, Rollout):
        return None
    versions = (*slot.versions, (row.policy_step, stretch.drawn))
    return Slot(slot.draw, slot.index, row.response, versions)


def slot_to_plain(slot: Slot) -> dict[str, Any]:
    """As torch.load reads it with weights_only=True; a draw is saved as its number."""
    response = slot.response
    return {
        "draw": slot.draw.number,
        "index": slot.index,
        "ids": None if response is None else list(response.ids),
        "logprobs": None
        if response is None or response.logprobs is None
        else list(response.logprobs),
        "versions": [list(version) for version in slot.versions],
    }


def slot_from_plain(saved: Mapping[str, Any], draw: Callable[[int], Draw]) -> Slot:
    """What `slot_to_plain` made.

    Args:
        saved: the slot.
        draw: the draw of a number.
    """
    response = None
    if saved["ids"] is not None:
        logprobs = None if saved["logprobs"] is None else tuple(saved["logprobs"])
        response = Response(tuple(saved["ids"]), "", logprobs, truncated=False, finished=False)
    versions = tuple((step, tokens) for step, tokens in saved["versions"])
    return Slot(draw(saved["draw"]), saved["index"], response, versions)
