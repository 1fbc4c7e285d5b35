"""What the quickstart taught: `python -m bench.quickstart RUN_FOLDER`, for a finished run.

`python -m bench.quickstart record RUN_FOLDER...` writes the results of one run for each seed to
bench/quickstart.json, with which tests/unit/test_quickstart.py compares README and
docs/understand/results/quickstart.md. It refuses runs of other settings than
configs/quickstart.toml has now.

Of the first, two figures that the run's own report does not give: the accuracy by operation, and
how many of the held-out problems the policy solves before and after when the beginning of its
answer is written for it ("4 + 7 ="). What rises only without that beginning is a way of answering;
what rises with it too is arithmetic.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import tomllib
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.stats import wilson
from assay.trainer.core.evaluation import end_token_ids
from assay.trainer.core.rewards import Judge, Sample, open_judge
from assay.trainer.data.problems import Problem, load_problems, render
from assay.trainer.engines.engine import EngineHost, Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.models import load_policy
from assay.trainer.engines.types import Draw, Request, Sampling
from assay.trainer.settings.config import Config, load
from assay.trainer.settings.sections import LoraConfig, ModelConfig

SETTINGS = Path(__file__).parents[1] / "configs" / "quickstart.toml"
RECORD = Path(__file__).with_suffix(".json")


def expression(problem: Problem) -> str:
    """The problem without words."""
    return problem.question.removeprefix("Calculate ").removesuffix(".")


def prefilled_accuracy(model: ModelConfig, problems: tuple[Problem, ...], judge: Judge) -> int:
    """How many problems are solved when the answer begins with the expression."""
    policy = load_policy(model, lambda _note: None)
    starts = [f"{expression(problem)} =" for problem in problems]
    prompts = [
        render(problem, policy.tokenizer) + start
        for problem, start in zip(problems, starts, strict=True)
    ]
    host = EngineHost(
        lambda: nullcontext(policy.model),
        policy.tokenizer,
        0,
        end_token_ids(policy),
        policy.autocast,
    )
    sampler = Sampler(HfEngine(host), Sampling(8, temperature=0.0, rows=50))
    encoded = policy.tokenizer(prompts)["input_ids"]
    requests = [
        Request(Draw(n, problem, tuple(ids)), 0)
        for n, (problem, ids) in enumerate(zip(problems, encoded, strict=True))
    ]
    texts = [response.text for response in sampler.generate(requests, lambda *_: None)]
    samples = [
        Sample(problem.question, start + text, problem.reference)
        for problem, start, text in zip(problems, starts, texts, strict=True)
    ]
    return sum(result.reward == 1.0 for result in judge.score(samples))


def by_operation(folder: Path, when: str) -> dict[str, tuple[int, int]]:
    """Right answers and problems, for each operation and for negative results."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for answer in json.loads((folder / f"eval_{when}.json").read_text())["answers"]:
        sign = next(sign for sign in "*+-" if f" {sign} " in answer["question"])
        kind = "- below 0" if answer["reference"].startswith("-") else sign
        counts[kind].append(answer["verdict"] == "correct")
    return {kind: (sum(right), len(right)) for kind, right in sorted(counts.items())}


def digest(settings: Path = SETTINGS) -> str:
    """Of what a configuration file says; comments and layout do not count."""
    tree = tomllib.loads(settings.read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def comparable(config: Config) -> Config:
    """Settings without what may differ between two runs of the quickstart."""
    model = dataclasses.replace(config.model, precision="auto")
    run = dataclasses.replace(config.run, name="", dir="", seed=0)
    return dataclasses.replace(config, model=model, run=run)


def result(folder: Path) -> dict[str, Any]:
    """Seed, precision and counts of a finished run.

    Raises:
        ValueError: it has other settings than configs/quickstart.toml.
    """
    config = load(folder / "config.toml")
    if comparable(config) != comparable(load(SETTINGS)):
        raise ValueError(f"{folder} is no run of {SETTINGS.name} as it is now")
    outcome = json.loads((folder / "report.json").read_text())
    return {
        "seed": config.run.seed,
        "precision": config.model.precision,
        **{when: outcome[when]["correct"] for when in ("before", "after")},
        "judged": outcome["after"]["judged"],
        **{key: outcome["change"][key] for key in ("gained", "lost")},
        "train_s": outcome["run"]["train_s"],
    }


def record(folders: list[Path]) -> None:
    """Writes bench/quickstart.json; raises as `result`."""
    runs = sorted(map(result, folders), key=lambda run: run["seed"])
    told = {"settings_sha256": digest(), "runs": runs}
    RECORD.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(RECORD.read_text())


def main(folder: Path) -> None:
    """Prints both figures."""
    environment.calm()
    config: Config = load(folder / "config.toml")
    problems = load_problems(config.data, eval_prompts=config.eval.prompts).eval
    before, after = by_operation(folder, "before"), by_operation(folder, "after")
    for kind, (right, of) in before.items():
        print(f"{kind:10s} {right:3d} -> {after[kind][0]:3d} of {of}")
    untrained = dataclasses.replace(config.model, lora=LoraConfig())
    trained = dataclasses.replace(untrained, name=str(folder / "model"))
    with open_judge(config.reward) as judge:
        for name, model in (("before", untrained), ("after", trained)):
            right = prefilled_accuracy(model, problems, judge)
            low, high = wilson(right, len(problems))
            share = right / len(problems)
            print(f"{name}: {share:.1%} [{low:.1%}, {high:.1%}] with the beginning written")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", *folders]:
            record([Path(folder) for folder in folders])
        case [folder]:
            main(Path(folder))
        case _:
            sys.exit(__doc__)
