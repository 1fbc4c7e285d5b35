"""Truncated rollouts: slots that draw a window of tokens a step, and are refilled as they end.

T-PPO (arXiv 2506.15050). A step waits for a window instead of its longest response: N = prompts *
samples slots each hold one response; in each step every slot draws at most `window` further tokens
with the current weights. A response that ends, by itself or at max_new_tokens, is judged, and its
slot takes the next sample of the stream; the others keep their slots.

* A dialogue's (method.turns) window spans its turns: the next turn draws what is left. It may stop
  within a turn or between two. A turn is judged in the step in which it ends.
* Slots are in order, and take samples in the order of the stream: the current prompt's next sample,
  else the next prompt's first. Members of a group may end in different steps.
* Every process knows all slots and draws its share; of the others it gets numbers. Every slot draws
  in every step, so that all processes have equal work.
* Each token keeps its log-probability and the policy version that drew it.
* With a window of max_new_tokens, a step is that of a Collector without dynamic sampling.

Numbered differences from the paper, whose text was not at hand: (1) the order of slots and refills
is a derivation; (2) a response cut at max_new_tokens is finished, and judged as cut; (3) unfinished
responses are dropped at the run's end, their tokens have trained; (4) the paper has no dialogues:
see methods/turns/credit.py. [derivation]
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Draw, Request
from assay.trainer.rollouts.exchange import SINGLE, Exchange, Talk, Transcript
from assay.trainer.rollouts.plain import transcript_from_plain, transcript_to_plain
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.sharing import share
from assay.trainer.rollouts.types import (
    Collected,
    Ranks,
    Rollout,
    ScoringRound,
    SlotRow,
    Then,
    nothing_more,
)
from assay.trainer.settings.sections import RolloutConfig


@dataclass(frozen=True, slots=True)
class Slot:
    """A sample that is being drawn.

    Attributes:
        index: of the sample.
        transcript: so far, in the process that draws it.
        versions: (optimizer steps of the policy, tokens it drew), in order.
        length: tokens of its last row; text between turns counts.
    """

    draw: Draw
    index: int
    transcript: Transcript = field(default_factory=Transcript)
    versions: tuple[tuple[int, int], ...] = ()
    length: int = 0

    @property
    def tokens(self) -> int:
        """Drawn by the policy."""
        return sum(tokens for _, tokens in self.versions)

    @property
    def request(self) -> Request:
        """For its first turn."""
        return Request(self.draw, self.index)


class SlotCollector:
    """Collects the slot rows of one step after another; a trainer.Source.

    Args:
        stream: only this collector moves its cursor, and saves it.
        sampler: can continue responses.
        open_round: begins the judging of one step's finished turns.
        window: most tokens that a slot draws in a step, at least 1.
        ranks: their count divides `prompts_per_step`.
    """

    def __init__(
        self,
        stream: PromptStream,
        sampler: Sampler,
        open_round: Callable[[], ScoringRound],
        *,
        config: RolloutConfig,
        window: int,
        ranks: Ranks,
        talk: Talk = SINGLE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = stream
        self._sampler = sampler
        self._talk = talk
        self._open_round = open_round
        self._config = config
        self._window = window
        self._ranks = ranks
        self._clock = clock
        count = config.prompts_per_step * config.group_size
        self._slots: tuple[Slot | None, ...] = (None,) * count
        self._queue: tuple[Slot, ...] = ()

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source."""
        start, queue = self._stream.cursor, self._queue
        try:
            return self._collect(policy_step, start, then)
        except BaseException:
            self._stream.give_back(self._stream.cursor - start)
            self._queue = queue
            raise

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        mine = [
            None if slot is None else slot_to_plain(slot) for slot in deal(self._slots, self._ranks)
        ]
        parcel = json.dumps(mine).encode()
        everyone = self._ranks.exchange([parcel, *[b""] * (self._ranks.count - 1)])
        return {
            "stream": self._stream.state_dict(),
            "slots": [slot for part in everyone if part for slot in json.loads(part)],
            "queue": [slot_to_plain(slot) for slot in self._queue],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source.

        Raises:
            ConfigError: also where the number of slots differs, or an unfinished response already
                has rollout.max_new_tokens.
        """
        saved = state.get("slots")
        if saved is None or len(saved) != len(self._slots):
            raise ConfigError(
                f"the checkpoint holds {'no' if saved is None else len(saved)} slots, this run has "
                f"{len(self._slots)}: resume with the rollout.prompts_per_step, rollout.group_size "
                "and method.truncation it was made with, or start a new run"
            )
        self._stream.load_state_dict(state["stream"])
        draw = self._stream.draw
        slots = tuple(None if one is None else slot_from_plain(one, draw) for one in saved)
        begun = [slot.transcript.turns[-1] for slot in slots if slot is not None]
        most = max((len(turn.ids) for turn in begun if not turn.finished), default=0)
        limit = self._config.max_new_tokens
        if most >= limit:
            raise ConfigError(
                f"the checkpoint holds an unfinished response of {most} tokens, which "
                f"rollout.max_new_tokens = {limit} does not allow to go on; raise it"
            )
        mine = set(deal(range(len(slots)), self._ranks))
        self._slots = tuple(
            slot and replace(slot, transcript=slot.transcript if n in mine else Transcript())
            for n, slot in enumerate(slots)
        )
        self._queue = tuple(slot_from_plain(one, draw) for one in state["queue"])

    def _collect(self, policy_step: int, start: int, then: Then) -> Collected:
        slots = [slot or self._next() for slot in self._slots]
        own = deal(slots, self._ranks)
        transcripts, generate_s, wait_s = self._answered(own)
        slot_rows = [
            self._row(slot, one, policy_step) for slot, one in zip(own, transcripts, strict=True)
        ]
        numbers = self._ranks.gather(
            np.array(
                [
                    (one.whole, one.tokens - slot.tokens, len(slot_row.row.response.ids))
                    for slot, one, slot_row in zip(own, transcripts, slot_rows, strict=True)
                ],
                np.float64,
            )
        )
        ended = [bool(whole) for whole in numbers[:, 0]]
        drawn = [int(tokens) for tokens in numbers[:, 1]]
        judged = share(
            [slot_row.row for slot_row in slot_rows if isinstance(slot_row.row, Rollout)],
            [slot.request for slot, whole in zip(slots, ended, strict=True) if whole],
            self._ranks,
            facts=self._talk.facts,
            results=[result for one in transcripts for result in one.results.values()],
        )
        first = self._ranks.index * len(own)
        following = tuple(
            None
            if whole
            else replace(
                slot,
                transcript=transcripts[n - first] if 0 <= n - first < len(own) else Transcript(),
                versions=(*slot.versions, (policy_step, tokens)),
                length=int(length),
            )
            for n, (slot, whole, tokens, length) in enumerate(
                zip(slots, ended, drawn, numbers[:, 2], strict=True)
            )
        )
        collected = Collected(
            groups=[],
            judged=judged,
            metrics={
                "draws": float(self._stream.cursor - start),
                "rounds": 1.0,
                **self._metrics(slots, following, drawn),
            },
            generate_s=generate_s,
            wait_s=wait_s,
            slot_rows=slot_rows,
        )
        then(collected)
        self._slots = following
        return collected

    def _next(self) -> Slot:
        if not self._queue:
            [draw] = self._stream.take(1)
            self._queue = tuple(Slot(draw, index) for index in range(self._config.group_size))
        first, *rest = self._queue
        self._queue = tuple(rest)
        return first

    def _answered(self, slots: Sequence[Slot]) -> tuple[list[Transcript], float, float]:
        """This process's transcripts, judged; seconds of generation and of waiting."""
        exchange = Exchange(
            [slot.request for slot in slots],
            self._open_round(),
            self._talk,
            earlier=[slot.transcript for slot in slots],
            window=self._window,
        )
        began = self._clock()
        exchange.answered_by(self._sampler)
        generated = self._clock()
        transcripts = exchange.transcripts()
        return transcripts, generated - began, self._clock() - generated

    def _row(self, slot: Slot, transcript: Transcript, policy_step: int) -> SlotRow:
        of = self._talk.rollout if transcript.whole else self._talk.unfinished
        row = of(slot.request, transcript.turns, transcript.results, policy_step)
        return SlotRow(row, len(row.response.ids) - slot.length)

    def _metrics(
        self, slots: Sequence[Slot], following: Sequence[Slot | None], drawn: Sequence[int]
    ) -> dict[str, float]:
        going = [slot for slot in following if slot is not None]
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
        """Forward passes that drew tokens: each batch's longest slot, of the slowest process."""
        share = len(drawn) // self._ranks.count
        size = self._config.batch or share
        return max(
            sum(
                max(drawn[at : min(at + size, own + share)]) for at in range(own, own + share, size)
            )
            for own in range(0, len(drawn), share)
        )


def slot_to_plain(slot: Slot) -> dict[str, Any]:
    """For torch.load with weights_only=True; a draw is saved as its number."""
    return {
        "draw": slot.draw.number,
        "index": slot.index,
        "said": transcript_to_plain(slot.transcript),
        "versions": [list(version) for version in slot.versions],
        "length": slot.length,
    }


def slot_from_plain(saved: Mapping[str, Any], draw: Callable[[int], Draw]) -> Slot:
    """Inverse of `slot_to_plain`; `draw` gives the draw of a number."""
    versions = tuple((step, tokens) for step, tokens in saved["versions"])
    transcript = transcript_from_plain(saved["said"])
    return Slot(draw(saved["draw"]), saved["index"], transcript, versions, saved["length"])
