"""Process supervision for code (arXiv 2410.17621), in miniature: labels, guards, dense rewards.

    python -m experiments code_prm --out DIR --seeds 0,1,2

The language and its oracle are those of programs.py: what can still be made of a beginning is
known exactly. For each seed:

    labels   programs of the pretrained model, labelled by binary search with K = 20 completions of
             it, beside the oracle; and the same search with completions that succeed with a chance
             of q wherever the oracle says that they can; then `assay train-rm` on these labels
             (configs/rm-code.toml), and once more on labels of the comments too
    arms     `assay train` (configs/code_prm.toml): unit tests alone, with the critic from the PRM,
             with dense rewards, with both; and dense rewards without each guard and without both;
             and value init with ten steps of value pre-training
    pipeline `assay code-prm` as it stands, with its services and the sandbox, on the same problems;
             for the first seed, and only where it is named

A run's PRM is read in the process that trains, cut and shown as genrm does it; nothing listens on a
port. Lines and comments are counted in all responses of the first and the last five steps. Signs
and orderings are what this can show, and no magnitudes.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.genrm.steps import label_lines, prefix_search, search_prefix, split
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder.outcome import read as read_outcome
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.code_prm.programs import (
    BACK,
    IDLE,
    NOTE,
    SHORT,
    oracle_lines,
    passes,
    programs,
)
from experiments.miniature import (
    Item,
    Job,
    Service,
    as_data,
    keep,
    over_seeds,
    read,
    told,
    train,
    work_off,
    write_rows,
)

CONFIGS = Path(__file__).parents[2] / "configs"
K, CHANCES, SEARCHES = 20, (0.05, 0.1, 0.2, 0.4), 2000
PER_PROBLEM, AGAIN = 5, 32
EDGE, WINDOW, THRESHOLD = 5, 5, 0.5
AT_ONCE = 64
SMALL = (
    "reward.verifier=miniature",
    "reward.parameters.step_rewards=signed",
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "method.critic.warmup_steps=0",
    "method.critic.pretrain_steps=0",
    "method.critic.learning_rate=1e-3",
    "optim.learning_rate=1e-3",
    "optim.warmup_steps=0",
    "optim.mini_batches=2",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=16",
    "rollout.group_size=4",
    f"rollout.max_new_tokens={SHORT.limit}",
    "eval.prompts=9",
    "eval.samples=8",
    "eval.batch_size=1000",
    "eval.temperature=1.0",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=1",
    "run.report_to=[]",
)
ARMS: Mapping[str, tuple[str, ...]] = {
    "sparse": ("ablate=kl,dense-rewards,value-init",),
    "value-init": ("ablate=kl,dense-rewards",),
    "dense": ("ablate=kl,value-init",),
    "dense+value-init": ("ablate=kl",),
    "without-span-normalisation": ("ablate=kl,value-init,span-normalisation",),
    "without-neutral-comments": ("ablate=kl,value-init,neutral-comments",),
    "without-both": ("ablate=kl,value-init,span-normalisation,neutral-comments",),
    "value-init+pre-trained": ("ablate=kl,dense-rewards", "method.critic.pretrain_steps=10"),
    "dense+value-init+pre-trained": ("ablate=kl", "method.critic.pretrain_steps=10"),
}
Rows = list[dict[str, Any]]


def cut(text: str) -> list[str]:
    """The lines of a program, as a PRM is served them."""
    return [text[span.start : span.end] for span in split(text, "code-line")]


class Writer:
    """The pretrained model: responses, and completions of beginnings, of at most `limit` tokens."""

    def __init__(self, folder: Path, limit: int = SHORT.limit) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

        load: Any = AutoModelForCausalLM.from_pretrained
        self._model = load(folder).eval()
        self._limit = limit
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def write(self, begun: Sequence[tuple[str, str]], count: int) -> list[list[str]]:
        """`count` whole programs for each question and beginning."""
        made: list[list[str]] = []
        for start in range(0, len(begun), AT_ONCE):
            made += self._some(begun[start : start + AT_ONCE], count)
        return made

    def _some(self, begun: Sequence[tuple[str, str]], count: int) -> list[list[str]]:
        import torch  # noqa: PLC0415

        tokenizer = self._tokenizer
        asked = tokenizer([q + text for q, text in begun], return_tensors="pt", padding=True)
        with torch.inference_mode():
            made = self._model.generate(
                input_ids=asked["input_ids"],
                attention_mask=asked["attention_mask"],
                do_sample=True,
                top_k=0,
                max_new_tokens=self._limit,
                num_return_sequences=count,
                pad_token_id=tokenizer.pad_token_id,
            )
        rest = tokenizer.batch_decode(
            made[:, asked["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return [
            [text + some for some in rest[n * count : (n + 1) * count]]
            for n, (_, text) in enumerate(begun)
        ]


# Labels.


def written(writer: Writer, problems: Path) -> list[tuple[str, str]]:
    """Some programs for each problem of a file."""
    questions = [row["question"] for row in read_rows(problems)]
    texts = writer.write([(question, "") for question in questions], PER_PROBLEM)
    return [(q, text) for q, some in zip(questions, texts, strict=True) for text in some]


def label(writer: Writer, found: Sequence[tuple[str, str]]) -> tuple[Rows, int]:
    """Searches all programs side by side; the rows, and how many completions were drawn."""
    rows: Rows = []
    searches: dict[int, tuple[Any, int]] = {}
    for number, (question, text) in enumerate(found):
        lines = cut(text)
        code = [place for place, line in enumerate(lines) if line != NOTE]
        rows.append({"question": question, "lines": lines, "code": code, "most": len(code)})
        rows[-1]["passed"] = passes(question, text)
        if not rows[-1]["passed"]:
            search = prefix_search(len(code))
            searches[number] = search, next(search)
    drawn = 0
    while searches:
        numbers = list(searches)
        asked = [_beginning(rows[n], searches[n][1]) for n in numbers]
        made = writer.write(asked, K)
        drawn += K * len(asked)
        for n, (question, _), texts in zip(numbers, asked, made, strict=True):
            search, _ = searches.pop(n)
            try:
                asked_next = search.send(any(passes(question, text) for text in texts))
                searches[n] = search, asked_next
            except StopIteration as end:
                rows[n]["most"] = end.value
    return rows, drawn


def _beginning(row: Mapping[str, Any], code_lines: int) -> tuple[str, str]:
    return row["question"], "".join(row["lines"][: _lines_in(row, code_lines)])


def _lines_in(row: Mapping[str, Any], code_lines: int) -> int:
    return row["code"][code_lines - 1] + 1 if code_lines else 0


def agreement(writer: Writer, rows: Rows) -> dict[str, float]:
    """How often the search's length is the oracle's, in lines of code, by the least chance q.

    q is the share of `AGAIN` completions of the oracle's longest feasible beginning that pass: that
    of the shorter ones which the search asks about is lower.
    """
    wrong = [row for row in rows if not row["passed"]]
    lengths = []
    for row in wrong:
        bound = oracle_lines(row["question"], row["lines"])
        lengths.append(sum(place < bound for place in row["code"]))
    chances = []
    for start in range(0, len(wrong), 32):
        some = [
            _beginning(row, size)
            for row, size in zip(
                wrong[start : start + 32], lengths[start : start + 32], strict=True
            )
        ]
        for (question, _), texts in zip(some, writer.write(some, AGAIN), strict=True):
            chances.append(statistics.fmean(passes(question, text) for text in texts))
    same = [row["most"] == size for row, size in zip(wrong, lengths, strict=True)]
    sure = [ok for ok, chance in zip(same, chances, strict=True) if chance >= 0.2]
    return {
        "programs": len(rows),
        "failing": len(wrong),
        "share": statistics.fmean(same),
        "q": statistics.fmean(chances),
        "with q": len(sure),
        "share with q": statistics.fmean(sure) if sure else float("nan"),
    }


def simulated(seed: int) -> dict[str, dict[str, float]]:
    """The search over 16 lines where completions of feasible beginnings pass with a chance of q."""
    found = {}
    for chance in CHANCES:
        dice = random.Random(seed)
        gaps = []
        for _ in range(SEARCHES):
            true = dice.randint(0, 16)
            length, _ = search_prefix(16, partial(_lucky, true, chance, dice))
            gaps.append(abs(length - true))
        found[f"{chance:g}"] = {
            "share": statistics.fmean(gap == 0 for gap in gaps),
            "lines": statistics.fmean(gaps),
        }
    return found


def _lucky(true: int, chance: float, dice: random.Random, size: int) -> bool:
    return size <= true and any(dice.random() < chance for _ in range(K))


def step_rows(rows: Rows, *, comments: bool) -> Rows:
    """Rows for `assay train-rm`; `comments`: labelled as if they were code."""
    made = []
    for row in rows:
        neutral = [line == NOTE and not comments for line in row["lines"]]
        labels = label_lines(neutral, _lines_in(row, row["most"]))
        made.append(
            {"prompt": row["question"], "steps": list(row["lines"]), "labels": list(labels)}
        )
    return made


def learn_prm(folder: Path, policy: Path, rows: Rows, seed: int) -> dict[str, Any]:
    """`assay train-rm` in this process; its evaluation."""
    from rich.console import Console  # noqa: PLC0415

    from assay.trainer.recipes.reward_model import config as rm_configs  # noqa: PLC0415
    from assay.trainer.recipes.reward_model.run import run as learn  # noqa: PLC0415

    path = write_rows(folder.with_suffix(".jsonl"), rows)
    config = rm_configs.load(
        CONFIGS / "rm-code.toml",
        [
            f"data.paths=['{path}']",
            f"model.name={policy}",
            "model.precision=float32",
            "optim.learning_rate=2e-3",
            "optim.warmup_steps=0",
            "optim.micro_batch=32",
            "eval.prompts=8",
            "eval.before=false",
            "run.steps=150",
            "run.checkpoint_every=0",
            f"run.seed={seed}",
        ],
    )
    made = rm_configs.RUNS.create(config, folder.name, folder)
    report = learn(config, made, Console(file=io.StringIO()))
    assert report is not None, "interrupted"
    figures = report["after"]["figures"]
    return {name: figure["value"] for name, figure in figures.items()}


# Runs.


class Lines(Service):
    """Tests, and beside them the lines as a PRM scores them.

    Args:
        prm: its folder; None for tests alone.
        splitting: "code-line", or "line" for comments too.
    """

    def __init__(self, prm: Path | None, splitting: str) -> None:
        super().__init__(_is_right, rewards=(0.0, 1.0))
        self._splitting: Any = splitting
        self._model: Any = None
        if prm is not None:
            from transformers import AutoModelForTokenClassification, AutoTokenizer  # noqa: PLC0415

            from assay.genrm.engines.prompts import PromptEncoder  # noqa: PLC0415

            load: Any = AutoModelForTokenClassification.from_pretrained
            self._model = load(prm).eval()
            self._encoder = PromptEncoder(AutoTokenizer.from_pretrained(prm))

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Judges a batch."""
        response = await super().batch_score(request, timeout_s=timeout_s)
        self._score(request.items, response.results)
        return response

    def _answer(self, items: Iterable[Item]) -> reward_pb2.StreamScoreResponse:
        some = list(items)
        response = super()._answer(some)
        self._score(some, response.results)
        return response

    def _score(self, items: Sequence[Item], results: Iterable[Any]) -> None:
        """Adds the spans."""
        if self._model is None:
            return
        import torch  # noqa: PLC0415

        from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece  # noqa: PLC0415

        asked = []
        for item, result in zip(items, results, strict=True):
            spans = split(item.response, self._splitting) if item.response.strip() else ()
            if all(span.neutral for span in spans):
                continue
            prompt = Prompt(
                (PromptMessage("user", (PromptPiece(_question(item), trusted=False),)),)
            )
            lines = [item.response[span.start : span.end] for span in spans]
            asked.append((result, spans, *self._encoder.encode_steps(prompt, lines)))
        if not asked:
            return
        width = max(len(ids) for *_, ids, _ in asked)
        tokens = torch.tensor([[*ids, *([0] * (width - len(ids)))] for *_, ids, _ in asked])
        with torch.inference_mode():
            scores = self._model(input_ids=tokens).logits[..., 0].clamp(-1, 1)
        for (result, spans, _, ends), row in zip(asked, scores.tolist(), strict=True):
            for span, end in zip(spans, ends, strict=True):
                if not span.neutral:
                    placed = result.judgement.spans.add(reward=row[end], label="step")
                    placed.range.start, placed.range.end = span.start, span.end


def _is_right(item: Item) -> bool:
    """A program that passes and ended by itself."""
    return not item.truncated and passes(_question(item), item.response)


def _question(item: Item) -> str:
    return item.prompt[0].content


def settings(
    arm: str, seed: int, steps: int, data: Sequence[Path], prm: Path, *more: str
) -> Config:
    """Of a run; `more` goes before what the arm says."""
    model, problems, held_out = data
    return configs.load(
        CONFIGS / "code_prm.toml",
        [
            f"data.path={problems}",
            f"data.eval_path={held_out}",
            f"model.name={model}",
            f"method.critic.init={prm}",
            f"run.steps={steps}",
            f"run.seed={seed}",
            *SMALL,
            *more,
            *ARMS[arm],
        ],
    )


def figures(folder: Path, report: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """What a run came to."""
    texts: dict[int, list[str]] = {}
    for row in read_rows(folder / "samples.jsonl"):
        texts.setdefault(row["step"], []).append(row["response"])
    found: dict[str, Any] = {"accuracy": report["after"]["accuracy"]}
    for name, chosen in (
        ("first", range(1, EDGE + 1)),
        ("last", range(steps - EDGE + 1, steps + 1)),
    ):
        some = [text for step in chosen for text in texts.get(step, [])]
        lines = [text.splitlines(keepends=True) for text in some]
        whole = [line for text in lines for line in text]
        found |= {
            f"lines {name}": statistics.fmean(map(len, lines)),
            f"trivial {name}": statistics.fmean(line == IDLE for line in whole),
            f"comments {name}": statistics.fmean(line == NOTE for line in whole),
            f"ended {name}": statistics.fmean(text.endswith(BACK) for text in some),
        }
    outcome = read_outcome(folder)
    rows = outcome.rows if outcome else ()
    right = [row["correct"] for row in rows]
    found["correct"] = right
    found["correct last"] = statistics.fmean(right[-EDGE:])
    found["steps to threshold"] = next(
        (
            step
            for step in range(WINDOW, len(right) + 1)
            if statistics.fmean(right[step - WINDOW : step]) >= THRESHOLD
        ),
        None,
    )
    return found


def job(out: Path, seed: int, steps: int, parts: Sequence[str], arms: Sequence[str] = ()) -> None:
    """One seed: labels, PRMs and arms, each kept as soon as it is there."""
    import torch  # noqa: PLC0415

    environment.calm()
    torch.set_num_threads(1)
    data = programs(out / "models")
    here = out / "seeds" / str(seed)
    here.mkdir(parents=True, exist_ok=True)
    if not (here / "labels.json").is_file():
        torch.manual_seed(seed)
        writer = Writer(data[0])
        rows, drawn = label(writer, written(writer, data[1]))
        result: dict[str, Any] = {**agreement(writer, rows), "completions": drawn}
        result["simulated"] = simulated(seed)
        for name, comments in (("guarded", False), ("bare", True)):
            some = step_rows(rows, comments=comments)
            result[name] = learn_prm(here / f"prm-{name}", data[0], some, seed)
        keep(here / "labels.json", result)
    for arm in (arms or ARMS) if "arms" in parts else ():
        place = here / f"{arm}.json"
        if place.is_file():
            continue
        bare = arm in ("without-neutral-comments", "without-both")
        prm = here / ("prm-bare" if bare else "prm-guarded") / "model"
        config = settings(arm, seed, steps, data, prm)
        dense = config.method.dense.weight > 0
        splitting = str(config.reward.parameters.get("splitting", "code-line"))
        folder = here / place.stem
        report = train(config, folder, partial(Lines, prm if dense else None, splitting))
        keep(place, figures(folder, report, steps))
        print(f"seed {seed}, {arm}: done", flush=True)


def pipeline(out: Path, seed: int) -> None:
    """`assay code-prm` on the pretrained model and the same problems."""
    from assay.trainer.recipes.code_prm.commands import code_prm  # noqa: PLC0415

    model, problems, held_out = programs(out / "models")
    both, prm = "train.overrides", "prm.overrides"
    words = [
        f"start.policy={model}",
        f"start.seed={seed}",
        "problems.source=jsonl",
        f"problems.path={problems}",
        f"problems.eval_path={held_out}",
        *(f"{both}.{word}" for word in SMALL if word.startswith(("model", "algo", "opt", "roll"))),
        *(f"{both}.{word}" for word in SMALL if word.startswith("eval")),
        f"{both}.reward.parameters.extraction=whole",
        f"{both}.method.critic.pretrain_steps=4",
        f"{both}.run.steps=8",
        "samples.per_prompt=1",
        f"{prm}.model.precision=float32",
        f"{prm}.optim.learning_rate=2e-3",
        f"{prm}.optim.warmup_steps=0",
        f"{prm}.eval.prompts=8",
        f"{prm}.run.steps=100",
        "labels.keep=full",
    ]
    path = str(CONFIGS / "pipelines" / "code_prm.toml")
    code_prm.main([path, *words, "--dir", str(out / "pipeline")], standalone_mode=False)


# The table.


def table(out: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """Prints what is there, and gives it for JSON."""
    found = {seed: out / "seeds" / str(seed) for seed in seeds}
    labels = {s: read(p / "labels.json") for s, p in found.items() if (p / "labels.json").is_file()}
    data: dict[str, Any] = {"labels": {}, "arms": {}}
    if labels:
        print(f"\nLabels, K = {K}: the search's length is the oracle's; {len(labels)} seeds")
        for name in ("failing", "share", "q", "with q", "share with q", "completions"):
            value = over_seeds({s: float(row[name]) for s, row in labels.items()})
            data["labels"][name] = as_data(value)
            print(f"  {name:16} {told(value)}")
        for chance in next(iter(labels.values()))["simulated"]:
            share, lines = (
                over_seeds({s: row["simulated"][chance][name] for s, row in labels.items()})
                for name in ("share", "lines")
            )
            data["labels"][f"q={chance}"] = as_data(share)
            print(f"  q = {chance:4}  share {told(share)}, lines between {told(lines)}")
        for name in ("guarded", "bare"):
            for figure in next(iter(labels.values()))[name]:
                value = over_seeds({s: row[name].get(figure) for s, row in labels.items()})
                print(f"  PRM {name}, {figure}: {told(value)}")
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for arm in ARMS:
        rows[arm] = {
            s: read(p / f"{arm}.json") for s, p in found.items() if (p / f"{arm}.json").is_file()
        }
    names = ("correct last", "accuracy", "lines first", "lines last", "trivial last",
             "comments first", "comments last", "ended last", "steps to threshold")  # fmt: skip
    for arm, runs in rows.items():
        if not runs:
            continue
        print(f"\n{arm} ({len(runs)} seeds)")
        data["arms"][arm] = {}
        for name in names:
            reached = {s: run[name] for s, run in runs.items()}
            value = over_seeds(reached)
            data["arms"][arm][name] = {**(as_data(value) or {}), "seeds": reached}
            extra = f"  {list(reached.values())}" if name == "steps to threshold" else ""
            print(f"  {name:20} {told(value)}{extra}")
    return data


def run(arguments: Sequence[str] = ()) -> None:
    """Runs what is missing, prints the table and keeps it as DIR/table.json."""
    parser = argparse.ArgumentParser(prog="python -m experiments code_prm")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-code-prm"), help="what is done stays"
    )
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--parts", default="labels,arms", help="labels, arms, pipeline")
    parser.add_argument("--arms", default=",".join(ARMS), help="which")
    parser.add_argument("--steps", type=int, default=30, help="of each run")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time; 0: only the table")
    given = parser.parse_args(arguments)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    parts = given.parts.split(",")
    if given.jobs and "pipeline" in parts:
        pipeline(given.out, seeds[0])
    if given.jobs and {"labels", "arms"} & set(parts):
        programs(given.out / "models")
        jobs = []
        for seed in seeds:
            words = (
                "-m",
                "experiments.code_prm.contest",
                str(given.out),
                str(seed),
                str(given.steps),
            )
            last = "labels" if "arms" not in parts else f"done-{given.steps}-{given.arms}"
            result = given.out / "seeds" / str(seed) / f"{last}.json"
            jobs.append(Job(f"seed {seed}", (*words, given.parts, given.arms), result))
        work_off(jobs, given.jobs)
    keep(given.out / "table.json", table(given.out, seeds))


if __name__ == "__main__":
    _out, _seed, _steps, _parts, _arms = sys.argv[1:]
    job(Path(_out), int(_seed), int(_steps), _parts.split(","), _arms.split(","))
    if "arms" in _parts:
        keep(Path(_out) / "seeds" / _seed / f"done-{_steps}-{_arms}.json", {"seed": int(_seed)})
