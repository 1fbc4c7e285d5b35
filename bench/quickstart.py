"""What the quickstart taught: `python -m bench.quickstart RUN_FOLDER`, for a finished run.

Two figures that the run's own report does not give: the accuracy by operation, and how many of the
held-out problems the policy solves before and after when the beginning of its answer is written for
it ("4 + 7 ="). What rises only without that beginning is a way of answering; what rises with it too
is arithmetic.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

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
from assay.trainer.settings.sections import ModelConfig


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


def main(folder: Path) -> None:
    """Prints both figures."""
    environment.calm()
    config: Config = load(folder / "config.toml")
    problems = load_problems(config.data, eval_prompts=config.eval.prompts).eval
    before, after = by_operation(folder, "before"), by_operation(folder, "after")
    for kind, (right, of) in before.items():
        print(f"{kind:10s} {right:3d} -> {after[kind][0]:3d} of {of}")
    trained = dataclasses.replace(config.model, name=str(folder / "model"))
    with open_judge(config.reward) as judge:
        for name, model in (("before", config.model), ("after", trained)):
            right = prefilled_accuracy(model, problems, judge)
            low, high = wilson(right, len(problems))
            share = right / len(problems)
            print(f"{name}: {share:.1%} [{low:.1%}, {high:.1%}] with the beginning written")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
