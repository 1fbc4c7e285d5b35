"""Engines side by side: `python -m bench engine --engines hf,paged`.

The same requests, each with its own length (log-normal, no end token, so that every engine draws
equally much), by the same weights:

    whole       all requests at once
    windows     T-PPO's slots: each draws at most a window, is refilled when it ends, and all wait
                for the window; against rounds in which all wait for the longest
    dialogues   PAG's turns: each dialogue goes on when its own turn ends; against lockstep

Prints seconds, tokens a second, and ratios of the medians. In `--engines vllm`'s environment:
`make test-vllm` installs it, then `.venv-vllm/bin/python -m bench engine --engines hf,paged,vllm`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import count

import numpy as np

from assay.trainer.core.answering import engine_for
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import EngineHost, Id, Sampler
from assay.trainer.engines.models import LoadedPolicy, load_policy
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.settings import config as configs
from assay.trainer.settings.sections import ModelConfig
from bench.common import interleaved, spread

LONGEST = 160
TURNS = 3
BETWEEN = (7, 8, 9)
"""Stands between two turns; which tokens these are does not matter here."""


def lengths(size: int, seed: int, mean: float) -> list[int]:
    """Log-normal with a spread of 0.8, between 2 and LONGEST."""
    drawn = np.random.default_rng(seed).lognormal(np.log(mean) - 0.32, 0.8, size)
    return [int(min(max(one, 2), LONGEST)) for one in drawn]


def requests(sizes: Sequence[int], *, vocabulary: int) -> list[Request]:
    """Prompts of 8 to 40 tokens, each with its own limit."""
    dice = np.random.default_rng(7)
    return [
        Request(Draw(n, Problem(str(n), "", (), ""), tuple(map(int, ids))), 0, window=size)
        for n, size in enumerate(sizes)
        for ids in [dice.integers(100, vocabulary, int(dice.integers(8, 41)))]
    ]


class Contest:
    """One engine's ways to do the same work.

    Args:
        name: of the engine.
        policy: answers.
        responses: at once.
        slots: of windows.
    """

    def __init__(self, name: str, policy: LoadedPolicy, responses: int, slots: int) -> None:
        overrides = [f"rollout.backend={name}", f"rollout.max_new_tokens={LONGEST}"]
        config = configs.build({}, overrides, origin="bench")
        steps = count()
        host = EngineHost(
            lambda: nullcontext(policy.model), policy.tokenizer, 0, frozenset(), policy.autocast,
            version=lambda: next(steps),
        )  # fmt: skip
        self.sampler = Sampler(engine_for(host, config), Sampling(TURNS * LONGEST))
        vocabulary = policy.model.config.vocab_size
        self.asked = requests(lengths(responses, 1, 38), vocabulary=vocabulary)
        self._slots = slots
        self.drawn = 0

    def whole(self) -> None:
        """All at once."""
        self._answered(self.asked)

    def rounds(self) -> None:
        """As many at a time as there are slots; each round waits for its longest."""
        for start in range(0, len(self.asked), self._slots):
            self._answered(self.asked[start : start + self._slots])

    def windows(self) -> None:
        """Slots that draw at most 32 tokens and are refilled."""
        waiting: Iterator[Request] = iter(self.asked)
        going = [(one, 0, one) for one in _some(waiting, self._slots)]
        while going:
            asked = [
                replace(one, window=min(32, whole.window - done)) for one, done, whole in going
            ]
            found = self._answered(asked)
            following = []
            for (one, done, whole), response in zip(going, found, strict=True):
                drawn = len(response.ids) - (len(one.begun.ids) if one.begun else 0)
                if done + drawn < whole.window:
                    following.append((replace(one, begun=response), done + drawn, whole))
            following += [(one, 0, one) for one in _some(waiting, self._slots - len(following))]
            going = following

    def lockstep(self) -> None:
        """Every dialogue's turn, then every dialogue's next."""
        turns = self._dialogues()
        said: list[Request] = [first for first, *_ in turns]
        for turn in range(TURNS):
            found = self._answered(said)
            if turn + 1 < TURNS:
                said = [
                    self._next(one, response, turns[n][turn + 1].window)
                    for n, (one, response) in enumerate(zip(said, found, strict=True))
                ]

    def each(self) -> None:
        """Every dialogue goes on when its own turn ends."""
        turns = self._dialogues()
        asked: dict[Id, Request] = {}

        def follow(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
            place, turn = id_
            self.drawn += len(response.ids)
            if turn + 1 < TURNS:
                following = self._next(asked[id_], response, turns[place][turn + 1].window)
                asked[place, turn + 1] = following
                return [((place, turn + 1), following)]
            return ()

        asked |= {(n, 0): first for n, (first, *_) in enumerate(turns)}
        self.sampler.serve(list(asked.items()), follow)

    def _dialogues(self) -> list[list[Request]]:
        size = len(self.asked) // TURNS
        return [[self.asked[n + turn * size] for turn in range(TURNS)] for n in range(size)]

    @staticmethod
    def _next(one: Request, response: Response, window: int) -> Request:
        ids = (*one.draw.prompt_ids, *response.ids, *BETWEEN)
        draw = replace(one.draw, prompt_ids=ids)
        return Request(draw, one.index, window=window, turn=one.turn + 1)

    def _answered(self, asked: Sequence[Request]) -> list[Response]:
        found = self.sampler.generate(asked, lambda *_: None)
        begun = sum(len(one.begun.ids) for one in asked if one.begun)
        self.drawn += sum(len(one.ids) for one in found) - begun
        return found


def _some(waiting: Iterator[Request], size: int) -> list[Request]:
    return [one for _, one in zip(range(size), waiting, strict=False)]


def run(arguments: Sequence[str] = ()) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench engine", description=__doc__)
    parser.add_argument("--engines", default="hf,paged")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--responses", type=int, default=48)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    policy = load_policy(
        ModelConfig(name=chosen.model, device="cpu", precision="float32"), lambda _line: None
    )
    of = {
        name: Contest(name, policy, chosen.responses, chosen.slots)
        for name in chosen.engines.split(",")
    }
    ways: dict[str, Callable[[Contest], None]] = {
        "whole": Contest.whole,
        "rounds": Contest.rounds,
        "windows": Contest.windows,
        "lockstep": Contest.lockstep,
        "dialogues": Contest.each,
    }
    contestants = {
        f"{name} {way}": (lambda contest=contest, act=act: act(contest))
        for way, act in ways.items()
        for name, contest in of.items()
    }
    tokens: dict[str, int] = {}
    for label, act in contestants.items():  # the first time an engine starts; it is not counted
        contest = of[label.split()[0]]
        contest.drawn = 0
        act()
        tokens[label] = contest.drawn
    seconds = interleaved(contestants, chosen.rounds)
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    print(f"\n{chosen.model}, {chosen.responses} requests, {chosen.slots} slots, float32, CPU")
    for label, values in seconds.items():
        rate = tokens[label] / medians[label]
        print(f"{label:18s} {spread(values)} s  {tokens[label]:5d} tokens  {rate:7.1f} tokens/s")
    print("\nratios of medians")
    for name in of:
        windows = medians[f"{name} windows"] / medians[f"{name} rounds"]
        dialogues = medians[f"{name} dialogues"] / medians[f"{name} lockstep"]
        line = f"{name:6s} windows / rounds {windows:.2f}, dialogues / lockstep {dialogues:.2f}"
        if name != "hf" and "hf" in of:
            line += f", whole / hf's {medians[f'{name} whole'] / medians['hf whole']:.2f}"
        print(line)
    for contest in of.values():
        contest.sampler.engine.close()
