"""Our batching in the embedded engine against transformers' continuous batching, over one model.

Both loops serve the same messages over the same weights in this process, by turns, on SmolLM2-135M.
What is compared is CPU time, which others on the machine disturb less than the clock. Every round
has new prompts, the same ones for all contestants; that greedy texts, sampled texts and verdicts'
probabilities are equal is checked.

`python -m bench judge-batching`, and the last part of `judge-speed`; ASSAY_BENCH_MODEL names
another model (a folder, or a hub's). Question 4 of `bench.judge_speed`; the peer is
`bench.continuous_batching`.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from assay.kit import pretrained
from bench.common import spread

ROUNDS = 3
VOTES = 8
VOTE_TOKENS = 16
WRITERS = 8
WRITER_TOKENS = 12
GROUP = 16
SHARED_WORDS = 240
_CANDIDATES = (
    "The second train gains thirty kilometres an hour, so it needs two hours and meets it at noon.",
    "They never meet, because the first train is always ahead of the second one on this line.",
    "After some minutes the distance is thirty kilometres; then it shrinks, and they meet.",
)
_TEXT = (
    "A train leaves the station at nine and runs at sixty kilometres an hour; a second one leaves "
    "an hour later, runs at ninety, and takes the same line, which is three hundred long. "
)
_fresh = itertools.count(1)

Job = dict[str, Any]


def run(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench judge-batching")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments or [])
    path = os.environ.get("ASSAY_BENCH_MODEL") or str(pretrained.ensure(pretrained.SMOLLM2, print))
    compare(path, options.rounds)


def compare(path: str, rounds: int = ROUNDS) -> None:
    """Prints CPU seconds of each loop, and each one's ratio to ours: median of the rounds'."""
    served = _Served(path)
    contestants = served.contestants()
    print(f"\njudge-batching: {path}, {rounds} rounds, CPU seconds, by turns in one process")
    cases: dict[str, Callable[[], list[Job]]] = {
        "1 candidate": lambda: served.candidates(1),
        f"{GROUP} of one prompt": lambda: served.candidates(GROUP),
        f"{VOTES} votes of {VOTE_TOKENS} tokens": served.votes,
        f"{WRITERS} prompts, {WRITER_TOKENS} tokens each": served.writers,
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    for round_ in range(rounds):
        for case, make in cases.items():
            jobs = make()
            names = list(contestants)
            order = [*names[round_ % len(names) :], *names[: round_ % len(names)]]
            answers = {}
            for name in order:
                taken, answers[name] = contestants[name](jobs)
                seconds.setdefault((case, name), []).append(taken)
                print(f"round {round_ + 1}: {case}: {name}: {taken:.2f} s", flush=True)
            _check_equal(answers)
    for case in cases:
        ours = seconds[case, "ours"]
        for name in contestants:
            values = seconds[case, name]
            if math.isnan(values[0]):
                continue
            ratio = statistics.median(b / a for a, b in zip(ours, values, strict=True))
            print(f"{case:>32s}  {name:<22s} {spread(values)} s   {ratio:.2f} times ours")
    for name in contestants:
        one, group = (seconds[case, name] for case in list(cases)[:2])
        ratio = statistics.median(b / a for a, b in zip(one, group, strict=True))
        print(f"{name:>32s}  {GROUP} of one prompt cost {ratio:.2f} times one (aim: under 4)")
    print(f"{'cache and mask, from the start':>32s}  {served.peer_bytes / 2**20:.0f} MiB")


class _Served:
    """One model, and the loops over it."""

    def __init__(self, path: str) -> None:
        from transformers import AutoTokenizer  # noqa: PLC0415 - seconds that others do not need

        from assay.genrm.engines.prompts import PromptEncoder  # noqa: PLC0415 - likewise
        from assay.genrm.engines.worker.network import Network  # noqa: PLC0415
        from assay.genrm.engines.worker.settings import WorkerSettings  # noqa: PLC0415

        self._settings = WorkerSettings(
            location=path,
            arguments={},
            head="generative",
            device="auto",
            precision="auto",
            good_label=1,
            max_batch_tokens=8192,
            max_batch_items=128,
            prefix_cache_tokens=8192,
        )
        self._network = Network(self._settings)
        self._tokenizer = AutoTokenizer.from_pretrained(path)
        self._encoder = PromptEncoder(self._tokenizer)
        self.peer_bytes = 0

    def contestants(self) -> dict[str, Callable[[list[Job]], tuple[float, list[Job]]]]:
        """What answers jobs, and says how long it took."""
        from assay.genrm.engines.worker.loop import BatchLoop  # noqa: PLC0415 - see above
        from bench.continuous_batching import ContinuousLoop  # noqa: PLC0415 - likewise

        peers = {rows: self._contestant(ContinuousLoop, rows=rows) for rows in (2, 8)}
        return {
            "ours": self._contestant(BatchLoop),
            **{f"transformers, {rows} rows": peer for rows, peer in peers.items()},
            "nothing shared": self._contestant(BatchLoop, shares=False),
        }

    def candidates(self, count: int) -> list[Job]:
        """Verdicts on candidates of one new prompt."""
        question = self._question()
        options = self._encoder.encode_options((" A", " B"))
        ids = [self._ids(f"{question}\n({n}) {_CANDIDATES[n % 3]}") for n in range(count)]
        return [{"kind": "choose", "ids": one, "options": options} for one in ids]

    def votes(self) -> list[Job]:
        """Sampled answers to one new prompt."""
        ids = self._ids(self._question())
        return [_write(ids, VOTE_TOKENS, temperature=1.0, seed=n) for n in range(VOTES)]

    def writers(self) -> list[Job]:
        """Greedy answers to prompts of different lengths that share nothing."""
        return [
            _write(self._ids(self._question(10 + 20 * n)), WRITER_TOKENS) for n in range(WRITERS)
        ]

    def _question(self, words: int = SHARED_WORDS) -> str:
        text = " ".join(itertools.islice(itertools.cycle(_TEXT.split()), words))
        return f"Case {next(_fresh)}. {text} When do they meet?"

    def _ids(self, text: str) -> tuple[int, ...]:
        from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece  # noqa: PLC0415 - see above

        return self._encoder.encode(
            Prompt((PromptMessage("user", (PromptPiece(text),)),), prefill="Answer:")
        )

    def _contestant(self, kind: Any, *, shares: bool = True, **options: Any) -> Any:
        answers: dict[int, Job] = {}
        network = self._network
        shape = network.shape
        loop = kind(
            network,
            self._settings,
            network.end_tokens(self._tokenizer),
            self._encoder.decode,
            lambda some, _: answers.update({answer["id"]: answer for answer in some}),
            **options,
        )
        self.peer_bytes = getattr(loop, "cache_bytes", self.peer_bytes)
        numbers = itertools.count()

        def answer(jobs: list[Job]) -> tuple[float, list[Job]]:
            if not shares and jobs[0]["kind"] == "write":
                return math.nan, []
            network.shape = shape if shares else None
            network._picked = None  # noqa: SLF001  # of the other loop's last pass
            asked = [next(numbers) for _ in jobs]
            bodies = [{"id": n, **job} for n, job in zip(asked, jobs, strict=True)]
            loop.inbox.put({"ask": bodies})
            began = time.process_time()
            while not all(n in answers for n in asked):
                loop.turn()
            network.shape = shape
            return time.process_time() - began, [answers.pop(n) for n in asked]

        return answer


def _write(ids: tuple[int, ...], tokens: int, **settings: Any) -> Job:
    plain = {"temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ()}
    return {"kind": "write", "ids": ids, "max_tokens": tokens, **plain, **settings}


def _check_equal(answers: dict[str, list[Job]]) -> None:
    """Ends the measurement where the contestants disagree."""
    ours = answers["ours"]
    for name, theirs in answers.items():
        for mine, other in zip(ours, theirs or ours, strict=True):
            if "error" in mine or "error" in other:
                raise SystemExit(f"bench: no answer: {mine}, {other}")
            if mine.get("text") != other.get("text"):
                raise SystemExit(f"bench: {name} wrote {other['text']!r}, and we {mine['text']!r}")
            pairs = zip(mine.get("logprobs", ()), other.get("logprobs", ()), strict=True)
            if any(abs(a - b) > 1e-3 for a, b in pairs):
                raise SystemExit(f"bench: {name} says {other['logprobs']}, and we {mine}")
