"""Dialogues without a model: policy and judge are functions of draw, sample and turn."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from assay.clients import Fault, Judgement, Result
from assay.clients.judging.verdicts import Verdict
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.methods.truncation.slots import SlotCollector
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.methods.turns.protocol import Protocol
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import OneRank, PolicyTurn, Rollout
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import stream

END = 9
"""Ends a turn."""
LONGEST = 5
"""Tokens of a turn that is cut."""
VERIFY, REVISE = (900, 901), (902,)
SAYS = {"correct": "The answer is correct.", "wrong": "The answer is wrong.", "unparsed": "Hm."}
VERIFIES = Protocol((VERIFY, REVISE), verifies=True)
RECONSIDERS = Protocol((REVISE,), verifies=False)


def judged(outcome: str) -> Result:
    """Of "correct", "incorrect" or "fault"."""
    if outcome == "fault":
        return Result("0", Fault("WORKER_DIED", "told to", "UNAVAILABLE"))
    return Result("0", Judgement(float(outcome == "correct"), outcome))


def dialogue(first: str, verdict: Verdict | None = None, second: str | None = None) -> Rollout:
    """Of turns of two tokens with one token between them; without a verdict, attempts alone."""
    said: list[tuple[Verdict | None, Result | None]] = [(None, judged(first))]
    if verdict is not None:
        said.append((verdict, None))
    if second is not None:
        said.append((None, judged(second)))
    turns = tuple(
        PolicyTurn(3 * n, 3 * n + 2, SAYS.get(verdict or "", str(n)), False, verdict, result)
        for n, (verdict, result) in enumerate(said)
    )
    length = 3 * len(turns) - 1
    results = [turn.result for turn in turns if turn.result is not None]
    result = next((one for one in results if one.fault is not None), results[-1])
    response = Response(tuple(range(4, 4 + length)), "text", (-0.5,) * length, False)
    return Rollout(Request(stream().draw(0), 0), response, result, 0, turns)


class Speaker:
    """A policy that is none.

    Args:
        says: what a verification says, given draw and sample.
        verifies: the second turn is a verification.

    Attributes:
        says: as given.
        engine: what it speaks through.
    """

    def __init__(self, says: Callable[[int, int], Verdict], *, verifies: bool = True) -> None:
        self.says = says
        self._verifies = verifies
        self.engine = ScriptedEngine(lambda r: self.response(r.draw.number, r.index, r.turn))
        self.sampler = Sampler(self.engine, Sampling(LONGEST))

    @property
    def prompts(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """What each (draw, sample, turn) was shown."""
        return {(r.draw.number, r.index, r.turn): r.draw.prompt_ids for r in self.engine.asked}

    def response(self, number: int, index: int, turn: int) -> Response:
        dice = random.Random(f"{number}-{index}-{turn}")
        truncated = dice.random() < 0.3
        length = LONGEST if truncated else dice.randrange(1, LONGEST)
        ids = tuple(dice.randrange(10, 100) for _ in range(length))
        if not truncated:
            ids = (*ids, END)
        text = f"{number}/{index}/{turn}"
        if self._verifies and turn == 1:
            text = SAYS[self.says(number, index)]
        return Response(ids, text, tuple(-float(i) for i in ids), truncated)


class ContinuingSpeaker(Speaker):
    """A policy that takes a turn up where it was left.

    Each token's log-probability is -1 less the step in which it is drawn.

    Attributes:
        step: as of now.
        fails: as soon as it is asked.
    """

    def __init__(self, says: Callable[[int, int], Verdict], *, verifies: bool = True) -> None:
        super().__init__(says, verifies=verifies)
        self.step = 0
        self.fails = False

    def response(self, number: int, index: int, turn: int) -> Response:
        if self.fails:
            raise RuntimeError("told to")
        told = super().response(number, index, turn)
        return replace(told, logprobs=(-1.0 - self.step,) * len(told.ids))

    def turns(self, number: int, index: int, protocol: Protocol) -> int:
        """How many it takes."""
        if not protocol.verifies:
            return 2
        return 3 if self.says(number, index) == "wrong" else 2


@dataclass
class Round:
    """A judge: outcomes by draw, sample, turn, as the text says them."""

    outcome: Callable[[int, int, int], str]
    texts: list[str] = field(default_factory=list)

    def submit(self, request: Request, response: Response) -> None:
        assert response.finished
        assert request == Request(request.draw, request.index), "as if it had been drawn at once"
        number, index, _ = response.text.split("/")
        assert (int(number), int(index)) == (request.draw.number, request.index)
        self.texts.append(response.text)

    def results(self) -> list[Result]:
        return [judged(self.outcome(*map(int, text.split("/")))) for text in self.texts]


def chance(seed: int, *choices: str) -> Callable[..., Any]:
    """One of the choices for each place."""
    return lambda *place: random.Random(f"{seed}-{place}").choice(choices)


def decode(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def collector(
    speaker: Speaker,
    outcome: Callable[[int, int, int], str],
    *,
    protocol: Protocol = VERIFIES,
    prompts: int = 4,
    group_size: int = 3,
    ranks: Any = None,
    prompted: Any = None,
    **more: Any,
) -> Collector:
    ranks = ranks or OneRank()
    return Collector(
        prompted or stream(),
        speaker.sampler,
        lambda: Round(outcome),
        config=RolloutConfig(prompts_per_step=prompts, group_size=group_size),
        ranks=ranks,
        talk=Dialogues(protocol, decode),
        clock=lambda: 0.0,
        **more,
    )


def slots(
    speaker: Speaker,
    outcome: Callable[[int, int, int], str],
    *,
    window: int,
    protocol: Protocol = VERIFIES,
    prompts: int = 4,
    group_size: int = 3,
    ranks: Any = None,
    rounds: list[Round] | None = None,
) -> SlotCollector:
    """Dialogues, a window a step.

    Args:
        speaker: the policy.
        outcome: as for Round.
        window: tokens of a step.
        protocol: of the dialogues.
        prompts: of a step.
        group_size: samples of each.
        ranks: the processes.
        rounds: takes the rounds that are opened.
    """
    rounds = [] if rounds is None else rounds

    def open_round() -> Round:
        rounds.append(Round(outcome))
        return rounds[-1]

    return SlotCollector(
        stream(),
        speaker.sampler,
        open_round,
        config=RolloutConfig(
            prompts_per_step=prompts, group_size=group_size, max_new_tokens=LONGEST
        ),
        window=window,
        ranks=ranks or OneRank(),
        talk=Dialogues(protocol, decode),
        clock=lambda: 0.0,
    )
