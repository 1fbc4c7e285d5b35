"""How much of an episode's tool time a step does not wait for: tools run while others generate.

    python -m bench episodes-overlap --out DIR --rounds 3

A pretrained model of 0.1 M weights thinks (lengths as of a reasoner: most short, some long), calls
a tool, and goes on until the tool says DONE, after one to four calls. The tool is asynchronous and
waits for a known time, log-normal around `TOOL_S`, fixed by the row and the number of the call; it
does not compute, as a sandbox on other cores. Rows, tools and, between arms of `assay`, every drawn
token are the same:

    instant     the same tool answers at once: what generation alone takes
    hidden      `assay train` as it is: a tool runs while the engine draws for other episodes
    lock-step   all episodes' turns are generated, then all their tools run, side by side, then the
                next turns: the loop that one writes first

on `hf`, whose requests wait for the end of a batch, and on `paged`, which they join; and TRL's
GRPOTrainer with `environment_factory` and the same asynchronous tool, instant and not. Arms take
turns. An arm's wait is its time of generation less that of `instant` in the same round; hidden is
the share of lock-step's wait that `hidden` does not have.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import io
import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.miniature import (
    Service,
    Shape,
    as_data,
    keep,
    over_seeds,
    pretrained,
    told,
    train,
)

from assay.environments import Environment, tool
from assay.environments.environment import Row
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.engines.arrivals import Arrivals, Id
from assay.trainer.engines.engine import Follow, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs

CONFIG = Path(__file__).parent.parent / "configs" / "grpo.toml"
TOOL_S, SPREAD = 0.15, 1.0
PROMPTS, GROUP, CALLS = 4, 6, 4
THOUGHT, LONGEST = 16, 128
WARM_STEPS = 1
CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
HEAD, ASKED, MORE, DONE, SAID = "<tools>", "GO", "MORE", "DONE", "YES"
WORDS = ("~", CALL, HEAD, "<user>", "<assistant>", "<tool>", ASKED, MORE, DONE, SAID)
SHAPE = Shape(width=64, layers=2, context=1024, steps=500, batch=64, learning_rate=5e-3)
TEMPLATE = (
    "{% if tools %}<tools>{% for one in tools %}{{ one | tojson }}{% endfor %}{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{% for one in message.tool_calls or [] %}"
    '<tool_call>\n{"name": "{{ one.function.name }}", "arguments": '
    "{{ one.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
    "{% if message.role == 'assistant' %}<end>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
RESPONSES: Mapping[str, Any] = {  # as trl.chat_template_utils.qwen3_template, for this template
    "defaults": {"role": "assistant"},
    "start_anchor": "<assistant>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<end>\s*", "content": "text"},
    },
}
Step = dict[str, float]
Arm = Callable[[Path, Path, int], list[Step]]


def seconds_of(row: Mapping[str, Any], call: int, tool_s: float) -> float:
    """How long the call of this number, from 0, takes: `tool_s` in the mean."""
    factor = random.Random(f"{row['name']}-{call}").lognormvariate(-(SPREAD**2) / 2, SPREAD)
    return tool_s * factor


@dataclass(frozen=True, slots=True)
class LookingSettings:
    """How long a call takes in the mean, in seconds."""

    tool_s: float = 0.0


class Looking(Environment):
    """A tool that takes its time, and says when it was asked often enough."""

    name = "looking"
    Settings = LookingSettings

    def reset(self, row: Row) -> str:
        """See Environment."""
        self.calls = 0
        return str(row["prompt"])

    @tool
    async def look(self) -> str:
        """Looks."""
        return await looked(self, self.row, self.settings.tool_s)

    def reward(self) -> float:
        """See Environment."""
        return float(self.calls == self.row["calls"])


async def looked(world: Any, row: Mapping[str, Any], tool_s: float) -> str:
    """What the tool of both trainers does."""
    call, world.calls = world.calls, world.calls + 1
    if tool_s:
        await asyncio.sleep(seconds_of(row, call, tool_s))
    return DONE if world.calls >= row["calls"] else MORE


def rows() -> list[dict[str, Any]]:
    """Problems of one to `CALLS` calls; every step has all of them."""
    return [
        {"question": ASKED, "answer": SAID, "name": f"row {n}", "calls": 1 + n % CALLS}
        for n in range(PROMPTS)
    ]


def drawn(dice: random.Random) -> tuple[str, str]:
    """A conversation up to some turn, and that turn."""

    def thought() -> str:
        return "~" * min(1 + int(dice.expovariate(1 / THOUGHT)), LONGEST - 2)

    before = dice.randrange(CALLS + 1)
    is_done = before > 0 and dice.random() < 0.5
    answers = [MORE] * (before - is_done) + [DONE] * is_done
    # long thoughts of earlier turns would make this a lesson in reading far back
    turns = "".join(f"{'~' * dice.randrange(1, 9)}{CALL}<end><tool>{said}<assistant>"
                    for said in answers)  # fmt: skip
    prompt = f"{HEAD}a tool<user>{ASKED}<assistant>{turns}"
    return prompt, thought() + (SAID if is_done else CALL)


class LockStep(Sampler):
    """Generates all turns, then has all tools called, then goes on."""

    def serve(
        self,
        first: Iterable[tuple[Id, Request]],
        follow: Follow,
        arrivals: Arrivals | None = None,
    ) -> None:
        """See Sampler."""
        asked, ended, news = list(first), [], threading.Event()

        def heard(id_: Id, response: Response) -> Iterable[tuple[Id, Request]]:
            ended.append((id_, response))
            return ()

        while True:
            if arrivals is not None:
                arrivals.wakes(news.set)
                while arrivals.outstanding:
                    asked += arrivals.taken()
                    if arrivals.outstanding:
                        news.wait(0.01)
                        news.clear()
            if not asked:
                return
            super().serve(asked, heard)
            asked = [one for id_, response in ended for one in follow(id_, response)]
            ended.clear()


def assay(backend: str, sampler: type[Sampler], tool_s: float) -> Arm:
    """`assay train` with this engine, this way to wait for tools, and this tool."""

    def one(model: Path, folder: Path, steps: int) -> list[Step]:
        config = configs.load(
            CONFIG,
            (
                f"model.name={model}", f"data.path={folder.parent / 'rows.jsonl'}",
                "data.template={question}", "model.device=cpu", "model.precision=float32",
                "model.gradient_checkpointing=false", "reward.verifier=miniature",
                f"method.episodes.environment={Path(__file__)}:Looking",
                f"method.episodes.settings.tool_s={tool_s}", "method.episodes.format=native",
                f"method.episodes.turns={2 * CALLS}", f"rollout.backend={backend}",
                f"rollout.prompts_per_step={PROMPTS}", f"rollout.group_size={GROUP}",
                f"rollout.max_new_tokens={LONGEST}", "optim.micro_batch=0",
                "optim.learning_rate=1e-6", "eval.prompts=0", "run.checkpoint_every=0",
                "run.samples_every=0", "run.report_to=[]", f"run.steps={steps}",
            ),
        )  # fmt: skip
        with mock.patch("assay.trainer.core.answering.Sampler", sampler):
            train(config, folder, lambda: Service(lambda _item: True))
        return [
            {
                "generate_s": row["generate_s"],
                "step_s": row["step_s"],
                "tool_s": row["episodes_tool_s"] * row["responses"],
                "calls": row["episodes_calls"],
                "tokens": row["generated_tokens"],
            }
            for row in read_rows(RunFolder(folder).metrics)
        ]

    return one


def trl(model: Path, folder: Path, steps: int, *, tool_s: float) -> list[Step]:
    """TRL's own trainer on the same model, rows and tool."""
    from datasets import Dataset  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415

    found: list[Step] = []
    spent: list[float] = []

    class World:
        """What TRL takes: `reset`, and tools as methods."""

        def reset(self, **row: Any) -> None:
            """Begins."""
            self.calls, self._row = 0, row

        async def look(self) -> str:
            """Looks."""
            began = time.perf_counter()
            said = await looked(self, self._row, tool_s)
            spent.append(time.perf_counter() - began)
            return said

        def get_reward(self) -> float:
            """As `Looking.reward`."""
            return float(self.calls == self._row["calls"])

    class Timed(GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Notes what a step takes, and generation with its tools."""

        def _generate(self, *arguments: Any) -> Any:
            began = time.perf_counter()
            generated = super()._generate(*arguments)
            self.generate_s = time.perf_counter() - began
            return generated

        def training_step(self, *arguments: Any) -> Any:
            spent.clear()
            began = time.perf_counter()
            loss = super().training_step(*arguments)
            tokens = self._metrics["train"]["completions/mean_length"][-1] * PROMPTS * GROUP
            found.append({
                "generate_s": self.generate_s, "step_s": time.perf_counter() - began,
                "tool_s": sum(spent), "calls": len(spent) / (PROMPTS * GROUP), "tokens": tokens,
            })  # fmt: skip
            return loss

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.response_template = dict(RESPONSES)
    prompts = [{"prompt": [{"role": "user", "content": ASKED}], **row} for row in rows()]
    trainer = Timed(
        model=AutoModelForCausalLM.from_pretrained(model),
        processing_class=tokenizer,
        environment_factory=World,
        train_dataset=Dataset.from_list(prompts),
        args=GRPOConfig(
            output_dir=str(folder), per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP, max_completion_length=(CALLS + 1) * LONGEST, max_steps=steps,
            learning_rate=1e-6, use_cpu=True, bf16=False, gradient_checkpointing=False,
            save_strategy="no", report_to="none", disable_tqdm=True,
        ),
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    return found


ARMS: dict[str, Arm] = {
    f"{backend}, {name}": assay(backend, sampler, tool_s)
    for backend in ("hf", "paged")
    for name, sampler, tool_s in (
        ("instant", Sampler, 0.0),
        ("hidden", Sampler, TOOL_S),
        ("lock-step", LockStep, TOOL_S),
    )
}
ARMS |= {
    "TRL, instant": functools.partial(trl, tool_s=0.0),
    "TRL": functools.partial(trl, tool_s=TOOL_S),
}


def run(options: Sequence[str]) -> None:
    """Runs the arms by turns; prints medians over rounds of medians over steps."""
    parser = argparse.ArgumentParser(prog="bench episodes-overlap")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/episodes-overlap"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help=f"of which {WARM_STEPS} warms up")
    chosen = parser.parse_args(options)
    environment.keep_freed_memory()
    environment.calm()
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    model = ready(chosen.out)
    found: dict[str, list[Step]] = {name: [] for name in ARMS}
    names = list(ARMS)
    for turn in range(chosen.rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            folder = chosen.out / name.replace(",", "").replace(" ", "-")
            steps = ARMS[name](model, folder, chosen.steps)[WARM_STEPS:]
            medians = {key: statistics.median(step[key] for step in steps) for key in steps[0]}
            found[name].append(medians)
            print(f"  round {turn + 1}, {name}: generates in {medians['generate_s']:.2f} s")
    keep(chosen.out / "episodes-overlap.json", {"rounds": found, **table(found)})


def ready(folder: Path) -> Path:
    """The model, with the chat template, and the rows beside it."""
    from transformers import AutoTokenizer  # noqa: PLC0415

    model = pretrained(folder / "looks", WORDS, drawn, SHAPE)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(model)
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    return model


def table(found: Mapping[str, Sequence[Step]]) -> dict[str, Any]:
    """Prints the lines of the table of docs/understand/results/trainer.md; and its numbers."""
    count = PROMPTS * GROUP
    print(f"\n{count} episodes a step; medians over rounds; a wait is against `instant`")
    print("| | calls an episode | tokens | tools, s | generates, s | a step waits, s | hidden |")
    print("|---|---|---|---|---|---|---|")
    numbers: dict[str, Any] = {}
    for name, rounds in found.items():
        medians = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        kind = name.partition(",")[0]
        waits = _waits(rounds, found[f"{kind}, instant"])
        base = _waits(found.get(f"{kind}, lock-step", []), found[f"{kind}, instant"])
        ratios = {
            n: 1 - wait / other if other > 0 else None
            for n, (wait, other) in enumerate(zip(waits, base, strict=False))
        }
        hidden = over_seeds(ratios) if name.endswith("hidden") else None
        numbers[name] = {**medians, "wait_s": statistics.median(waits), "hidden": as_data(hidden)}
        shown = "" if hidden is None else told(hidden, 2)
        print(
            f"| {name} | {medians['calls']:.2f} | {medians['tokens']:,.0f} | "
            f"{medians['tool_s']:.2f} | {medians['generate_s']:.2f} | "
            f"{'' if name.endswith('instant') else f'{statistics.median(waits):.2f}'} | {shown} |"
        )
    return {"medians": numbers}


def _waits(rounds: Sequence[Step], instant: Sequence[Step]) -> list[float]:
    pairs = zip(rounds, instant, strict=False)
    return [one["generate_s"] - other["generate_s"] for one, other in pairs]
