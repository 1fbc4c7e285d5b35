"""One step's rollouts: draws prompts, generates, has them judged, keeps the groups that train.

Every process runs a collector in lockstep: all draw the same prompts, each generates and judges its
share and shares the numbers (sharing.py), and all decide alike, from draws and judgements alone:

* groups keep the order of their draws, since the order of completion favours short responses;
* a round's size follows from the keep rate, whichever judgements are back, so that a run resumed,
  or on another number of processes, draws the same;
* the choice of prompts learns at the end of a step, from all its groups;
* where a round's draws do not divide among the processes, the next draws are generated ahead. They
  open the next round; unused ones return to the stream.

Responses are judged while others of their round are generated. Where a round is not expected to
fill the batch, the next is generated while the services finish.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from assay.clients import Result
from assay.kit import tracing
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Draw
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.dynamic import (
    KeepRate,
    SamplingLimits,
    Tally,
    draws_needed,
    give_up_message,
    keeps,
    kind_of,
    rate_from_plain,
    rate_to_plain,
    round_limit,
)
from assay.trainer.rollouts.exchange import SINGLE, Talk
from assay.trainer.rollouts.keepers import Keeper
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.rounds import Round
from assay.trainer.rollouts.sharing import dealt, read_groups, saved_groups
from assay.trainer.rollouts.types import (
    Collected,
    Known,
    KnownGroup,
    Place,
    Ranks,
    ScoringRound,
    Then,
    nothing_more,
)
from assay.trainer.settings.sections import RolloutConfig


class Collector:
    """Collects the groups of one step after another.

    Args:
        stream: only this collector moves its cursor, and saves it.
        open_round: begins the judging of one round of generation.
        dynamic: dynamic sampling; None keeps all groups of one round.
        ranks: their count divides `prompts_per_step`.
        keepers: in the order in which they act.
        again: whether to answer a judged group again within its step, in its problem's next form.
        survey: informs the selector before a step; gives the results that this took.
    """

    def __init__(
        self,
        stream: PromptStream,
        sampler: Sampler,
        open_round: Callable[[], ScoringRound],
        *,
        config: RolloutConfig,
        ranks: Ranks,
        talk: Talk = SINGLE,
        dynamic: SamplingLimits | None = None,
        keepers: Sequence[Keeper] = (),
        again: Callable[[KnownGroup], bool] | None = None,
        survey: Callable[[], Sequence[Result]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = stream
        self._keepers = tuple(keepers)
        self._talk = talk
        self._again = again
        self._survey = survey
        self._sampler = sampler
        self._open_round = open_round
        self._config = config
        self._dynamic = dynamic
        self._ranks = ranks
        self._clock = clock
        self._surplus: list[KnownGroup] = []
        self._rate = KeepRate(half_life=config.prompts_per_step)

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source; what a survey taught the selector stays.

        Raises:
            TrainingStoppedError: dynamic sampling reached its limit of rounds.
        """
        surveyed = self._survey() if self._survey is not None else ()
        start, rate = self._stream.cursor, self._rate
        try:
            collected = self._collect(policy_step, then)
        except BaseException:
            self._stream.give_back(self._stream.cursor - start)
            self._rate = rate
            raise
        if surveyed:
            collected.metrics["surveyed"] = float(len(surveyed))
            collected.surveyed = surveyed
        return collected

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        plain = partial(saved_groups, ranks=self._ranks)
        return {
            "stream": self._stream.state_dict(),
            "surplus": plain(self._surplus),
            "keep_rate": rate_to_plain(self._rate),
            **{keeper.name: keeper.state_dict(plain) for keeper in self._keepers},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source."""
        self._stream.load_state_dict(state["stream"])
        read = partial(
            read_groups, draw=self._stream.draw, ranks=self._ranks, facts=self._talk.facts
        )
        self._surplus = read(state["surplus"])
        self._rate = rate_from_plain(state["keep_rate"], self._config.prompts_per_step)
        for keeper in self._keepers:
            keeper.load_state_dict(state[keeper.name], read)

    def _collect(self, policy_step: int, then: Then) -> Collected:
        wanted = self._config.prompts_per_step
        earlier = [*(group for keeper in self._keepers for group in keeper.due()), *self._surplus]
        carried = earlier[:wanted]
        window = _Window(
            self._stream, self._sampler, self._open_round, self._talk, self._ranks,
            clock=self._clock, group_size=self._config.group_size, policy_step=policy_step,
            again=self._again, limits=self._dynamic,
        )  # fmt: skip
        fresh: list[KnownGroup] = []
        rounds = 0
        if self._dynamic is not None:
            if len(carried) < wanted:
                missing = wanted - len(carried)
                fresh, rounds = self._fill(self._dynamic, window, missing)
        else:
            window.generate(wanted - len(carried))
            fresh, rounds = window.judged(wanted - len(carried)), 1
        window.close()
        collected = self._chosen(window, earlier + fresh, rounds, policy_step)
        then(collected)
        own, surplus = (earlier + fresh)[:wanted], (earlier + fresh)[wanted:]
        for keeper in self._keepers:
            keeper.keep(own)
        self._surplus = surplus if self._dynamic is not None and self._dynamic.keep_surplus else []
        collected.metrics |= self._stream.learn(window.groups, self._ranks)
        return collected

    def _fill(
        self, dynamic: SamplingLimits, window: _Window, wanted: int
    ) -> tuple[list[KnownGroup], int]:
        """Draws round after round until `wanted` groups are kept; groups by draw, and the rounds.

        A round begins as soon as the batch is expected to lack a group, even before the last round
        is judged.
        """
        most = round_limit(self._config.prompts_per_step, dynamic.oversample)
        kept: list[KnownGroup] = []
        rounds = out = 0
        while True:
            missing = wanted - len(kept) - out * self._rate.value
            if missing > 1 - 1e-9 and rounds < dynamic.max_rounds:
                size = draws_needed(missing, self._rate.value, most=most)
                window.generate(size)
                rounds += 1
            elif out:
                size = 0
            elif len(kept) >= wanted:
                return kept, rounds
            else:
                told = give_up_message(window.tally, wanted=wanted, rounds=rounds)
                raise TrainingStoppedError(told)
            kept += self._counted(window.judged(out))
            out = size

    def _counted(self, groups: list[KnownGroup]) -> list[KnownGroup]:
        """The kept groups; updates the keep rate."""
        kept = [group for group in groups if keeps(group, self._dynamic)]
        judged = sum(kind_of(group) != "faulted" for group in groups)
        self._rate = self._rate.after(len(kept), judged)
        return kept

    def _chosen(
        self, window: _Window, groups: list[KnownGroup], rounds: int, policy_step: int
    ) -> Collected:
        wanted = self._config.prompts_per_step
        own, surplus = groups[:wanted], groups[wanted:]
        used = own
        for keeper in self._keepers:
            used = keeper.mix(used, self._stream.cursor)
        replaced = sum(one is not other for one, other in zip(used, own, strict=True))
        left_out: frozenset[Place] = frozenset()
        told: dict[str, float] = {}
        for keeper in self._keepers:
            left_out |= keeper.left_out(used)
            told |= keeper.metrics(replaced)
        stale = sum(any(one.policy_step < policy_step for one in group) for group in used)
        metrics = {
            **window.tally.metrics(self._config.group_size),
            "rounds": float(rounds),
            "surplus": float(len(surplus)),
            "stale_groups": float(stale),
            "generated_per_used": window.tally.drawn / wanted,
        }
        if self._again is not None:
            metrics["hinted_groups"] = float(window.tally.drawn - len(window.groups))
        if self._dynamic is not None:
            metrics["keep_rate_ema"] = self._rate.value
        return Collected(
            groups=dealt(used, self._ranks),
            judged=window.rollouts,
            metrics=metrics | told,
            generate_s=window.generate_s,
            wait_s=window.wait_s,
            left_out=left_out,
        )


class _Window:
    """The draws of one step, in the order of the stream.

    Of a group answered again in later forms of its problem, the last answer counts.

    Attributes:
        rollouts: all that were judged, on all processes.
        groups: as first answered.
        tally: of all groups, each repeat included.
    """

    def __init__(
        self,
        stream: PromptStream,
        sampler: Sampler,
        open_round: Callable[[], ScoringRound],
        talk: Talk,
        ranks: Ranks,
        *,
        clock: Callable[[], float],
        group_size: int,
        policy_step: int,
        again: Callable[[KnownGroup], bool] | None,
        limits: SamplingLimits | None,
    ) -> None:
        self._again = again
        self._talk = talk
        self._stream = stream
        self._sampler = sampler
        self._open_round = open_round
        self._ranks = ranks
        self._clock = clock
        self._group_size = group_size
        self._policy_step = policy_step
        self._ahead = 0
        self._out: deque[Round] = deque()
        self._judged: deque[KnownGroup] = deque()
        self.rollouts: list[Known] = []
        self.groups: list[KnownGroup] = []
        self.tally = Tally(limits)
        self.generate_s = 0.0
        self.wait_s = 0.0

    def generate(self, count: int) -> None:
        lacking = count - self._ahead
        if lacking <= 0:
            self._ahead -= count
            return
        taken = math.ceil(lacking / self._ranks.count) * self._ranks.count
        self._ahead = taken - lacking
        self._out.append(self._answered(self._stream.take(taken)))

    def judged(self, count: int) -> list[KnownGroup]:
        """The next `count` groups, generated before; waits for their judgements."""
        while len(self._judged) < count:
            self._judged += self._gathered(self._out.popleft())
        groups = [self._judged.popleft() for _ in range(count)]
        self.groups += groups
        self._count(groups)
        while again := self._to_answer_again(groups):
            lacking = -len(again) % self._ranks.count
            draws = [*again.values(), *[next(iter(again.values()))] * lacking]
            answered = self._gathered(self._answered(draws, fillers=lacking))
            self._count(answered)
            for place, group in zip(again, answered, strict=True):
                groups[place] = group
        return groups

    def _to_answer_again(self, groups: list[KnownGroup]) -> dict[int, Draw]:
        if self._again is None:
            return {}
        failed = [n for n, group in enumerate(groups) if self._again(group)]
        asked = {n: self._stream.again(groups[n][0].request.draw) for n in failed}
        return {n: draw for n, draw in asked.items() if draw is not None}

    def _count(self, groups: list[KnownGroup]) -> None:
        self.rollouts += [rollout for group in groups for rollout in group]
        self.tally.add(groups)

    def _answered(self, draws: list[Draw], *, fillers: int = 0) -> Round:
        asked = Round(
            draws, self._open_round(), self._ranks, self._group_size, self._talk, fillers=fillers
        )
        before = self._clock()
        with tracing.span("generate", {"assay.items": len(asked.requests)}):
            asked.answered_by(self._sampler)
        self.generate_s += self._clock() - before
        return asked

    def close(self) -> None:
        self._stream.give_back(self._ahead)
        self._ahead = 0

    def _gathered(self, finished: Round) -> list[KnownGroup]:
        before = self._clock()
        with tracing.span("wait for judgements"):
            finished.judged()
        self.wait_s += self._clock() - before
        return finished.groups(self._policy_step)
