"""What the trainer's miniatures share: models of a hundred thousand weights, a judge, and runs.

A miniature pretrains a model on text that a small program writes, and trains it as `assay train`
does (assay.trainer.recipes.train), each run in a process of its own. The judge is a function in
that process, behind the client that reaches a service: nothing listens on a port.

On a CUDA device the same commands run there (`model.device` is "auto"); no figure is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import io
import json
import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.clients.testing import ScriptedTransport
from assay.kit.runs import environment
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.stats import SeedMean, estimate
from assay.trainer.settings import config as configs

PAD, END = "<pad>", "<end>"
CONFIGS = Path(__file__).parents[1] / "configs"
TINY = (
    "reward.verifier=miniature",
    "data.template={question}",
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "optim.learning_rate=5e-4",
    "optim.warmup_steps=0",
    "optim.mini_batches=2",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=8",
    "rollout.group_size=8",
    "rollout.max_new_tokens=10",
    "eval.prompts=1",
    "eval.samples=1",
    "eval.batch_size=1000",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
"""What a run of episodes with such a model has in place of a preset's scale."""
Item = reward_pb2.Item
IsRight = Callable[[Item], bool]
OneRun = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From what a job wants, `folder` of the run among it, to the job's result."""


# Models.


@dataclass(frozen=True, slots=True)
class Shape:
    """A model of Llama's kind, and how long it is pretrained.

    Attributes:
        width: of the hidden states.
        layers: how many.
        context: tokens at most.
        steps: of pretraining, each on `batch` texts.
        batch: texts in one step.
        learning_rate: at its peak.
    """

    width: int = 64
    layers: int = 2
    context: int = 64
    steps: int = 600
    batch: int = 128
    learning_rate: float = 3e-3


def tokenizer_of(words: Sequence[str], pattern: str = "") -> Any:
    """One token for each word, none of which begins another; the messages of a chat stand one after
    the other, with nothing between. `pattern` is a regular expression of all of them."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    vocabulary = {token: n for n, token in enumerate((PAD, END, "<unk>", *words))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    longest_first = sorted(words, key=len, reverse=True)
    pattern = pattern or "|".join(word.translate(_ESCAPES) for word in longest_first)
    core.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    core.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        unk_token="<unk>",
        padding_side="left",
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer


_ESCAPES = {ord(sign): f"\\{sign}" for sign in ".+*?^$()[]{}|\\"}


def pretrained(
    folder: Path,
    words: Sequence[str],
    draw: Callable[[random.Random], tuple[str, str]],
    shape: Shape,
    *,
    device: str = "cpu",
) -> Path:
    """A model that writes as `draw` does; built once, then read from the folder.

    Args:
        folder: where it is, or where it goes.
        words: the vocabulary.
        draw: a prompt, and a response to it without its end.
        shape: of the model.
        device: that it learns on.
    """
    if (folder / "config.json").is_file():
        return folder
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, LlamaConfig  # noqa: PLC0415

    torch.manual_seed(0)
    dice = random.Random(0)
    tokenizer = tokenizer_of(words)
    heads = max(2, shape.width // 64)
    settings = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        intermediate_size=2 * shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=shape.width // heads,
        max_position_embeddings=shape.context,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    load: Any = AutoModelForCausalLM.from_config
    model = load(settings).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=shape.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=shape.learning_rate, total_steps=shape.steps
    )
    encode = functools.lru_cache(1 << 16)(lambda text: tuple(tokenizer(text)["input_ids"]))
    for _ in range(shape.steps):
        ids, labels = _texts(tokenizer, encode, [draw(dice) for _ in range(shape.batch)])
        ids, labels = ids.to(device), labels.to(device)
        loss = model(input_ids=ids, attention_mask=ids != tokenizer.pad_token_id, labels=labels)
        optimizer.zero_grad()
        loss.loss.backward()
        optimizer.step()
        schedule.step()
    beside = folder.with_name(f".{folder.name}-{os.getpid()}")
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside.rename(folder)
    return folder


def _texts(
    tokenizer: Any, encode: Callable[[str], Sequence[int]], drawn: Sequence[tuple[str, str]]
) -> tuple[Any, Any]:
    """Token ids, padded on the right, and labels: only responses are learnt."""
    import torch  # noqa: PLC0415

    rows = []
    for prompt, response in drawn:
        asked = list(encode(prompt))
        told = [*encode(response), tokenizer.eos_token_id]
        rows.append((asked + told, [-100] * len(asked) + told))
    width = max(len(ids) for ids, _ in rows)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([known + [-100] * (width - len(known)) for _, known in rows])
    return ids, labels


def likely(model: Path, problems: Path) -> float:
    """The mean chance of the very answer as the next token: whether a pretrained model is what a
    set-up says of it."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    network: Any = AutoModelForCausalLM.from_pretrained(model)
    chances = []
    for line in problems.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        asked = tokenizer([row["question"]], return_tensors="pt")["input_ids"]
        with torch.no_grad():
            told = torch.softmax(network(asked).logits[0, -1], dim=-1)
        chances.append(float(told[tokenizer.convert_tokens_to_ids(row["answer"])]))
    return sum(chances) / len(chances)


def write_problems(path: Path, problems: Iterable[tuple[str, str]]) -> Path:
    """Prompts and references as a .jsonl file."""
    return write_rows(path, ({"question": question, "answer": a} for question, a in problems))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A .jsonl file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# The judge.


class Service(ScriptedTransport):
    """A reward service in this process, one verifier, as a transport of the clients.

    Args:
        is_right: of an item; a truncated one may be right.
        rewards: of a wrong and of a right response.
        item_s: seconds that an item takes; it waits and does not compute, as for a verifier on
            other cores.
        workers: items at a time, where they take time.
    """

    def __init__(
        self,
        is_right: IsRight,
        *,
        rewards: tuple[float, float] = (-1.0, 1.0),
        item_s: float = 0.0,
        workers: int = 8,
    ) -> None:
        self._is_right = is_right
        self._rewards = rewards
        self._item_s = item_s
        self._workers = workers
        self._slots: asyncio.Semaphore | None = None

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """One, called "miniature"."""
        response = reward_pb2.ListVerifiersResponse(server_version="bench")
        response.verifiers.add(name="miniature")
        return response

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Judges a batch."""
        if self._item_s:
            await asyncio.gather(*(self._work() for _ in request.items))
        return reward_pb2.BatchScoreResponse(results=[self._judged(item) for item in request.items])

    async def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Judges items as they come, `workers` at a time."""
        if not self._item_s:
            async for request in requests:
                yield self._answer(request.items)
            return
        done: asyncio.Queue[Item | None] = asyncio.Queue()

        async def work(item: Item) -> None:
            await self._work()
            done.put_nowait(item)

        async def read() -> None:
            async with asyncio.TaskGroup() as tasks:
                async for request in requests:
                    for item in request.items:
                        tasks.create_task(work(item))
            done.put_nowait(None)

        reader = asyncio.create_task(read())
        try:
            while (item := await done.get()) is not None:
                yield self._answer([item])
        finally:
            reader.cancel()

    async def _work(self) -> None:
        if self._slots is None:
            self._slots = asyncio.Semaphore(self._workers)
        async with self._slots:
            await asyncio.sleep(self._item_s)

    def _answer(self, items: Iterable[Item]) -> reward_pb2.StreamScoreResponse:
        return reward_pb2.StreamScoreResponse(results=[self._judged(item) for item in items])

    def _judged(self, item: Item) -> reward_pb2.Result:
        right = self._is_right(item)
        result = reward_pb2.Result(id=item.id)
        result.judgement.reward = self._rewards[right]
        result.judgement.verdict = "correct" if right else "incorrect"
        result.judgement.components.add(name="miniature", score=float(right), weight=1.0)
        result.judgement.verifier.name = "miniature"
        return result


# Runs: in a process each, and what is kept of them.


@dataclass(frozen=True, slots=True)
class Job:
    """A process that writes one JSON file.

    Attributes:
        label: for people.
        arguments: of the interpreter.
        result: the file; where it is, the job is done.
    """

    label: str
    arguments: tuple[str, ...]
    result: Path


def job_of(module: str, label: str, folder: Path, **wanted: Any) -> Job:
    """A run of a method's `contest`, which calls `begin`; its result lies beside its folder.

    Args:
        module: the folder of its method.
        label: for people.
        folder: of the run.
        wanted: what else the run is told, as JSON has it.
    """
    result = folder.with_name(f"{folder.name}.json")
    text = json.dumps({**wanted, "folder": str(folder)})
    return Job(label, ("-m", f"experiments.{module}.contest", text, str(result)), result)


def seeded_job(module: str, name: str, seed: int, steps: int, out: Path) -> Job:
    """A contestant's run with one seed: the job of a miniature that needs to be told no more."""
    return job_of(
        module, f"{name}, seed {seed}", out / f"{steps}-steps" / f"{name}-{seed}",
        name=name, seed=seed, steps=steps, models=str(out / "models"),
    )  # fmt: skip


def begin(one: OneRun) -> None:
    """What a job's process does: one run, or several one after the other."""
    environment.keep_freed_memory()
    environment.calm()
    for wanted, result in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        keep(Path(result), one(json.loads(wanted)))


def in_one_process(label: str, jobs: Sequence[Job]) -> Job:
    """Several jobs of a module, each made by `job_of`, one after the other: what it imports takes
    as long as a short run. After one that fails, the rest is not begun."""
    arguments = (word for job in jobs for word in job.arguments[2:])
    return Job(label, (*jobs[0].arguments[:2], *arguments), jobs[-1].result)


def finished(
    jobs: Mapping[tuple[str, int], Job], at_a_time: int, one: OneRun, *, together: bool = False
) -> dict[str, dict[int, dict[str, Any]]]:
    """Runs what is not done yet.

    Args:
        jobs: by contestant and seed, each made by `job_of`.
        at_a_time: processes; 0 for this one, which saves the time that a process takes to start.
        one: what a job's process calls.
        together: whether the runs of a contestant share a process.

    Returns:
        The results by contestant and seed; of a run that failed there is none.
    """
    if at_a_time:
        work_off(_by_contestant(jobs) if together else jobs.values(), at_a_time)
    for job in jobs.values():
        if not at_a_time and not job.result.is_file():
            job.result.parent.mkdir(parents=True, exist_ok=True)
            keep(job.result, one(json.loads(job.arguments[2])))
            print(f"  {job.label}: done")
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name, _ in jobs}
    for (name, seed), job in jobs.items():
        if job.result.is_file():
            found[name][seed] = read(job.result)
    return found


def _by_contestant(jobs: Mapping[tuple[str, int], Job]) -> list[Job]:
    waiting: dict[str, list[Job]] = {}
    for (name, _), job in jobs.items():
        if not job.result.is_file():
            waiting.setdefault(name, []).append(job)
    return [in_one_process(name, some) for name, some in waiting.items()]


def options(method: str, *, steps: int, seeds: str = "0,1,2") -> argparse.ArgumentParser:
    """The options that all miniatures have."""
    parser = argparse.ArgumentParser(prog=f"experiments {method}")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments") / method)
    parser.add_argument("--seeds", default=seeds)
    parser.add_argument("--steps", type=int, default=steps, help="of each run")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at a time, a core each; 0: in this process"
    )
    return parser


def work_off(jobs: Iterable[Job], at_a_time: int, *, threads: int = 1) -> list[Job]:
    """Runs what is not done yet; a job that fails is told, and the others go on.

    Returns:
        Those that are done, now or before.
    """
    jobs = list(jobs)
    waiting = deque(job for job in jobs if not job.result.is_file())
    going: dict[Job, tuple[subprocess.Popen[bytes], float]] = {}
    print(f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them done, {at_a_time} at a time")
    try:
        while waiting or going:
            while waiting and len(going) < at_a_time:
                job = waiting.popleft()
                going[job] = (_start(job, threads), time.perf_counter())
            time.sleep(0.05)
            for job, (process, started) in list(going.items()):
                if process.poll() is None:
                    continue
                del going[job]
                took = time.perf_counter() - started
                print(f"  {job.label}: {_outcome(job)} ({took:.0f} s)")
    finally:
        for process, _ in going.values():
            process.kill()
            process.wait()
    return [job for job in jobs if job.result.is_file()]


def _start(job: Job, threads: int) -> subprocess.Popen[bytes]:
    job.result.parent.mkdir(parents=True, exist_ok=True)
    with job.result.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *job.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )


def _outcome(job: Job) -> str:
    if job.result.is_file():
        return "done"
    lines = job.result.with_suffix(".log").read_text(errors="replace").splitlines()
    said = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    return f"failed: {said.strip()}"


def contest(
    method: str,
    words: Sequence[str],
    contestants: Iterable[str],
    steps: int,
    *,
    prepare: Callable[[Path], Any],
    one: OneRun,
) -> tuple[argparse.Namespace, dict[str, dict[int, dict[str, Any]]]]:
    """Runs all contestants with all seeds, as far as they are not done.

    Args:
        method: its folder.
        words: the command line's options.
        contestants: by name.
        steps: of a run, unless the options say otherwise.
        prepare: makes models and problems in a folder, before the first run.
        one: what a job's process calls.

    Returns:
        The options, and the results by contestant and seed.
    """
    chosen = options(method, steps=steps).parse_args(words)
    environment.calm()
    chosen.out.mkdir(parents=True, exist_ok=True)
    prepare(chosen.out / "models")
    jobs = {
        (name, seed): seeded_job(method, name, seed, chosen.steps, chosen.out)
        for name in contestants
        for seed in plan.read_seeds(chosen.seeds)
    }
    return chosen, finished(jobs, chosen.jobs, one)


def tiny(preset: str, wanted: Mapping[str, Any], made: tuple[Path, Path, Path], *own: str) -> Any:
    """A preset's settings for one run on a model, training rows and held-out ones; `own` last."""
    model, rows, held_out = made
    given = (
        f"model.name={model}",
        f"data.path={rows}",
        f"data.eval_path={held_out}",
        f"run.steps={wanted['steps']}",
        f"run.seed={wanted['seed']}",
    )
    return configs.load(CONFIGS / f"{preset}.toml", (*TINY, *given, *own), saved=True)


def keep(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a result; the file appears by one rename."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    beside.rename(path)


def read(path: Path) -> dict[str, Any]:
    """A result."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def train(config: Any, folder: Path, service: Callable[[], Service] | None) -> dict[str, Any]:
    """One run of `assay train` in this process, with a judge in it or their own; its report.

    A folder of a run that did not finish is removed: a miniature is short, it starts anew.
    """
    import shutil  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    from assay.trainer.recipes.train import run  # noqa: PLC0415
    from assay.trainer.records.folder import create  # noqa: PLC0415

    shutil.rmtree(folder, ignore_errors=True)
    made = create(config, folder.name, folder)
    report = run(config, made, Console(file=io.StringIO()), transport=service)
    assert report is not None, "interrupted"
    return report


def told(found: SeedMean | None, digits: int = 3) -> str:
    """A mean over seeds with its 95 % interval."""
    if found is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.mean:.{digits}f} (one seed)"
    return f"{found.mean:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def over_seeds(values: Mapping[int, float | None]) -> SeedMean | None:
    """The mean over the seeds that have a value, with a t interval."""
    return estimate([value for value in values.values() if value is not None])


def as_data(found: SeedMean | None) -> dict[str, float | int | None] | None:
    """An estimate for JSON."""
    if found is None:
        return None
    return {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n}
