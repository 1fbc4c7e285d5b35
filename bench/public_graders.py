"""Public graders as functions of a response and a reference, each called as its own package does.

`python -m bench audits --public` audits those whose package is installed. A grader that needs a
worked solution, a sample's state or a dictionary is given the least of it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from functools import cache
from typing import Any

logging.disable(logging.WARNING)


def math_verify_verify(response: str, reference: str) -> float:
    """`verify(parse(gold), parse(answer))`, as Math-Verify's page shows."""
    from math_verify import parse, verify  # noqa: PLC0415 - of a package that may be missing

    gold = parse(f"${reference}$", parsing_timeout=None)
    return float(verify(gold, parse(response, parsing_timeout=None), timeout_seconds=None))


def trl_accuracy_reward(response: str, reference: str) -> float:
    """TRL's `accuracy_reward`; what it skips (None) is no verdict."""
    from trl.rewards import accuracy_reward  # noqa: PLC0415

    said = accuracy_reward([[{"role": "assistant", "content": response}]], [f"${reference}$"])[0]
    if said is None:
        raise ValueError(reference)
    return float(said)


def verl_gsm8k(response: str, reference: str) -> float:
    """verl's `gsm8k.compute_score`, strict: the last #### NUMBER."""
    from verl.utils.reward_score import gsm8k  # noqa: PLC0415

    return float(gsm8k.compute_score(response, reference))


def verl_gsm8k_flexible(response: str, reference: str) -> float:
    """The same, flexible: the last number."""
    from verl.utils.reward_score import gsm8k  # noqa: PLC0415

    return float(gsm8k.compute_score(response, reference, method="flexible"))


def verl_math(response: str, reference: str) -> float:
    """verl's `math_reward.compute_score`: the last box, by Hendrycks' normalisation."""
    from verl.utils.reward_score import math_reward  # noqa: PLC0415

    return float(math_reward.compute_score(response, reference))


def verl_math_dapo(response: str, reference: str) -> float:
    """verl's `math_dapo.compute_score`, of which 1 is right and -1 wrong."""
    from verl.utils.reward_score import math_dapo  # noqa: PLC0415

    said: Any = math_dapo.compute_score(response, reference)
    return float(said["score"] > 0)


def verl_prime_math(response: str, reference: str) -> float:
    """verl's `prime_math.compute_score`, whose first value is the verdict."""
    from verl.utils.reward_score import prime_math  # noqa: PLC0415

    said: Any = prime_math.compute_score(response, reference)
    return float(said[0])


def skyrl_aime(response: str, reference: str) -> float:
    """SkyRL-Gym's `aime.utils.compute_score`."""
    from skyrl_gym.envs.aime import utils  # noqa: PLC0415

    said: Any = utils.compute_score(response, reference)
    return float((said["score"] if isinstance(said, dict) else said) > 0)


def swift_math_accuracy(response: str, reference: str) -> float:
    """ms-swift's `MathAccuracy`."""
    return float(_swift()([response], [f"${reference}$"])[0])


@cache
def _swift() -> Any:
    from swift.rewards.orm import MathAccuracy  # noqa: PLC0415

    return MathAccuracy()


def lm_eval_hendrycks_math(response: str, reference: str) -> float:
    """lm-evaluation-harness, hendrycks_math: what stands between the outer dollars."""
    from lm_eval.tasks.hendrycks_math import utils  # noqa: PLC0415

    said = utils.process_results({"solution": f"\\boxed{{{reference}}}"}, [response])
    return float(said["exact_match"])


def lm_eval_gsm8k_flexible(response: str, reference: str) -> float:
    """lm-evaluation-harness, gsm8k: its filter `flexible-extract`, then its exact match."""
    from lm_eval.api.metrics import exact_match_hf_evaluate  # noqa: PLC0415
    from lm_eval.filters.extraction import RegexFilter  # noqa: PLC0415

    pattern = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
    found = RegexFilter(regex_pattern=pattern, group_select=-1).apply([[response]], [{}])
    said = exact_match_hf_evaluate(
        predictions=[next(iter(next(iter(found))))], references=[f"#### {reference}"],
        regexes_to_ignore=[",", "\\$", "(?s).*#### ", "\\.$"], ignore_case=True,
    )  # fmt: skip
    return float(said["exact_match"])


def inspect_match(response: str, reference: str) -> float:
    """Inspect's `match(numeric=True)`: at the end of the completion."""
    return _inspected("match", response, reference, numeric=True)


def inspect_includes(response: str, reference: str) -> float:
    """Inspect's `includes()`: anywhere in the completion."""
    return _inspected("includes", response, reference)


def _inspected(name: str, response: str, reference: str, **options: Any) -> float:
    from inspect_ai import scorer as scorers  # noqa: PLC0415
    from inspect_ai.model import ModelOutput  # noqa: PLC0415
    from inspect_ai.solver import TaskState  # noqa: PLC0415

    state = TaskState(
        model="none/none", sample_id=1, epoch=1, input="", messages=[],
        output=ModelOutput.from_content("none", response),
    )  # type: ignore[call-arg]  # fmt: skip
    scored = getattr(scorers, name)(**options)(state, scorers.Target(reference))
    return float(asyncio.run(scored).value == "C")


def reasoning_gym_default(response: str, reference: str) -> float:
    """reasoning-gym's `score_answer` of a data set without one of its own."""
    return float(_reasoning().score_answer(response, {"answer": reference}))


@cache
def _reasoning() -> Any:
    import reasoning_gym  # noqa: PLC0415

    return reasoning_gym.create_dataset("leg_counting", size=1, seed=0)


def verl_search_r1(response: str, reference: str) -> float:
    """verl's `search_r1_like_qa_em.compute_score`: the last <answer>, as SQuAD compares."""
    from verl.utils.reward_score import search_r1_like_qa_em as em  # noqa: PLC0415

    return float(em.compute_score(response, {"target": [reference]}))


def verl_search_r1_subem(response: str, reference: str) -> float:
    """verl's `compute_score_subem`: the answer has the reference somewhere."""
    from verl.utils.reward_score import search_r1_like_qa_em as em  # noqa: PLC0415

    return float(em.compute_score_subem(response, {"target": [reference]}))


PACKAGES = {
    "math_verify_verify": "math-verify", "trl_accuracy_reward": "trl", "verl_gsm8k": "verl",
    "verl_gsm8k_flexible": "verl", "verl_math": "verl", "verl_math_dapo": "verl",
    "verl_prime_math": "verl", "verl_search_r1": "verl", "verl_search_r1_subem": "verl",
    "skyrl_aime": "skyrl-gym", "swift_math_accuracy": "ms-swift",
    "lm_eval_hendrycks_math": "lm_eval", "lm_eval_gsm8k_flexible": "lm_eval",
    "inspect_match": "inspect_ai", "inspect_includes": "inspect_ai",
    "reasoning_gym_default": "reasoning_gym",
}  # fmt: skip
"""Each grader's distribution."""
OF_NAMES = ("verl_search_r1", "verl_search_r1_subem", "inspect_includes")
"""Graders of short texts; the others are of mathematics."""


def version_of(name: str) -> str:
    """The version of a grader's package; empty where it is not installed."""
    try:
        return importlib.metadata.version(PACKAGES[name])
    except importlib.metadata.PackageNotFoundError:
        return ""
