r"""Graders of mathematics, each in a child process of its own: `python -m bench.math_peers NAME`.

A grader may hang, eat memory or execute the text that it grades, so it runs in a process that is
killed, in an empty folder, and takes pairs from its parent: in goes a line of JSON with `gold`,
`response` and `question` of each (which few look at); out comes a line with `right` (true, false,
or null when it did not judge) and `ms` of each, and the CPU of all. What a grader prints goes
nowhere.

Peers that are not installed are looked for in the folder that ASSAY_BENCH_PEERS names, in which
`verl` and `pylatexenc` lie as packages (`pip install --no-deps --target FOLDER verl pylatexenc`);
without it the parent tries that command itself, in a temporary folder. verl's package is entered
without its own `__init__`, which would load a training framework.

Two peers are on no index: they take part where that folder holds checkouts of QwenLM/Qwen2.5-Math
and NVIDIA/NeMo-Skills, called `Qwen2.5-Math` and `NeMo-Skills`. The first needs what it pins, in a
folder of its own (`pip install --no-deps --target FOLDER/Qwen2.5-Math/packages
antlr4-python3-runtime==4.11.1 word2number==1.1`); of the second the grader alone is entered.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import resource
import sys
import time
import types
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.math_rows import WARM_UP

WARM_UP_S = 0.03
QWEN_FOLDERS = ("packages", "evaluation", "evaluation/latex2sympy")

Grade = Callable[[str, str, str], bool | None]
"""What it makes of a gold answer, a response and the question, which may be empty."""


def asked(gold: str, response: str, question: str, parameters: Any) -> Any:
    """An item as the server hands it to a verifier."""
    from assay.reward_server.domain import Candidate, Message, VerifierItem  # noqa: PLC0415

    prompt = (Message("user", question),) if question else ()
    return VerifierItem(Candidate(response), (gold,), prompt=prompt, parameters=parameters)


def assay() -> Grade:
    """Assay's verifier in process, all its tiers, as a worker of the server runs it."""
    from assay.reward_server.verifiers.math import MathVerifier  # noqa: PLC0415

    verifier = MathVerifier()
    verifier.prepare()
    parameters = verifier.spec.complete({})

    def grade(gold: str, response: str, question: str) -> bool | None:
        return verifier.judge(asked(gold, response, question, parameters)).reward > 0

    return grade


def assay_glance() -> Grade:
    """The tiers that the server runs in its own process; no judgement where they are undecided."""
    from assay.reward_server.verifiers.math import MathVerifier  # noqa: PLC0415

    verifier = MathVerifier()
    parameters = verifier.spec.complete({})

    def grade(gold: str, response: str, question: str) -> bool | None:
        judgement = verifier.glance(asked(gold, response, question, parameters))
        return None if judgement is None else judgement.reward > 0

    return grade


def assay_library() -> Grade:
    """`assay.math.grade`, its worker started beforehand; a fault is no judgement."""
    from assay.math import grade as judge  # noqa: PLC0415
    from assay.math import prepare  # noqa: PLC0415

    prepare()
    takes_question = "question" in inspect.signature(judge).parameters

    def grade(gold: str, response: str, question: str) -> bool | None:
        more = {"question": question} if takes_question and question else {}
        reward = judge(response, gold, **more).reward_or(None)
        return None if reward is None else reward > 0

    return grade


def assay_drop_in() -> Grade:
    r"""`assay.math.math_verify` as `math_verify_best` uses math-verify; gold answers kept alike."""
    from assay.math import prepare  # noqa: PLC0415
    from assay.math.math_verify import (  # noqa: PLC0415
        ExprExtractionConfig,
        LatexExtractionConfig,
        parse,
        verify,
    )

    prepare()
    targets = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
    known = lru_cache(maxsize=1024)(lambda text: parse(text, targets))

    def grade(gold: str, response: str, _question: str) -> bool | None:
        reference = known(gold if "\\boxed" in gold else f"\\boxed{{{gold.strip().strip('$')}}}")
        return verify(reference, parse(response, targets))

    return grade


def math_verify_best() -> Grade:
    r"""math-verify in the configuration that was most accurate on labelled pairs.

    Boxes first, the gold answer in a box of its own (a bare `12\pi` would lose its `\pi`), no
    alarms (the parent kills), 1,024 parsed gold answers kept where its own cache keeps 20.
    """
    from math_verify import (  # noqa: PLC0415
        ExprExtractionConfig,
        LatexExtractionConfig,
        parse,
        verify,
    )

    logging.getLogger("math_verify").setLevel(logging.ERROR)
    targets = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())

    def parsed(text: str) -> tuple[Any, ...]:
        return tuple(parse(text, targets, parsing_timeout=None))

    known = lru_cache(maxsize=1024)(parsed)

    def grade(gold: str, response: str, _question: str) -> bool | None:
        reference = known(gold if "\\boxed" in gold else f"\\boxed{{{gold.strip().strip('$')}}}")
        return bool(verify(list(reference), list(parsed(response)), timeout_seconds=None))

    return grade


def trl() -> Grade:
    """TRL's `accuracy_reward`, one completion a call, its alarms on."""
    from trl.rewards.accuracy_rewards import accuracy_reward  # noqa: PLC0415

    def grade(gold: str, response: str, _question: str) -> bool | None:
        reward = accuracy_reward([[{"role": "assistant", "content": response}]], [gold])[0]
        return None if reward is None else reward > 0

    return grade


def verl(module: str) -> Any:
    """A module of verl's `reward_score`, without verl's own `__init__`."""
    folder = os.environ["ASSAY_BENCH_PEERS"]
    sys.path.insert(0, folder)
    for name in ("verl", "verl.utils", "verl.utils.reward_score"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(folder, *name.split("."))]  # noqa: PTH118
        sys.modules[name] = package
    return importlib.import_module(f"verl.utils.reward_score.{module}")


def verl_math_dapo() -> Grade:
    """verl's grader of DAPO: text against text after Minerva's rewriting; a box will do."""
    score = verl("math_dapo").compute_score
    return lambda gold, response, _question: bool(score(response, gold)["acc"])


def verl_math_reward() -> Grade:
    """verl's grader of MATH: text against text after Hendrycks's rewriting."""
    score = verl("math_reward").compute_score
    return lambda gold, response, _question: score(response, gold) > 0


def verl_prime_math() -> Grade:
    """verl's grader of PRIME: sympy and `eval`."""
    score = verl("prime_math").compute_score
    return lambda gold, response, _question: bool(score(response, gold)[0])


def verl_math_verify() -> Grade:
    """What verl's pool runs for math-verify, here without the pool."""
    score = verl("math_verify")._verify_in_subprocess  # noqa: SLF001
    return lambda gold, response, _question: score(f"\\boxed{{{gold}}}", response) > 0


def qwen_math() -> Grade:
    """Qwen2.5-Math's evaluation: its extraction and grader as on MATH, without a time-out."""
    folder = Path(os.environ["ASSAY_BENCH_PEERS"]) / "Qwen2.5-Math"
    sys.path[:0] = [str(folder / name) for name in QWEN_FOLDERS]
    grader, parser = importlib.import_module("grader"), importlib.import_module("parser")

    def grade(gold: str, response: str, _question: str) -> bool | None:
        said = parser.extract_answer(response, "math")
        return bool(grader.math_equal(said, parser.strip_string(gold)))

    return grade


def nemo_skills() -> Grade:
    """NeMo-Skills' grader: the last box, read by math-verify in its own configuration."""
    folder = Path(os.environ["ASSAY_BENCH_PEERS"]) / "NeMo-Skills" / "nemo_skills"
    for name in ("nemo_skills", "nemo_skills.evaluation"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder.parent / name.replace(".", "/"))]
        sys.modules[name] = package
    logs = types.ModuleType("nemo_skills.utils")  # the real one loads its pipelines
    logs.get_logger_name = str  # type: ignore[attr-defined]
    sys.modules["nemo_skills.utils"] = logs
    grader = importlib.import_module("nemo_skills.evaluation.math_grader")
    return lambda gold, response, _question: bool(
        grader.math_equal(gold, grader.extract_answer(response))
    )


GRADERS: dict[str, Callable[[], Grade]] = {
    "Assay math": assay,
    "Assay math, fast tiers": assay_glance,
    "math-verify, best": math_verify_best,
    "TRL accuracy_reward": trl,
    "verl math_verify": verl_math_verify,
    "verl prime_math": verl_prime_math,
    "verl math_reward": verl_math_reward,
    "verl math_dapo": verl_math_dapo,
    "Qwen2.5-Math": qwen_math,
    "NeMo-Skills": nemo_skills,
}

LIBRARY: dict[str, Callable[[], Grade]] = {
    "assay.math grade": assay_library,
    "assay.math drop-in": assay_drop_in,
}
"""Asked by `bench.math_library`, beside some of the others."""


def cpu_ms() -> float:
    """CPU that this process and its ended children have used, in ms."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used) * 1e3


def graded(grade: Grade, gold: str, response: str, question: str = "") -> dict[str, object]:
    """What a grader makes of one pair, and how long it took; an exception is no judgement."""
    error = ""
    started_ns = time.perf_counter_ns()  # a clock that costs next to nothing
    try:
        right = grade(gold, response, question)
    except BaseException as fault:  # noqa: BLE001  # math-verify's time-out is no Exception
        right, error = None, type(fault).__name__
    return {"right": right, "ms": (time.perf_counter_ns() - started_ns) / 1e6, "error": error}


def warm_up(grade: Grade) -> None:
    """Grades some fixed pairs for a moment: while the others had their turns, caches went cold."""
    ends_s = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < ends_s:
        for gold, response in WARM_UP:
            graded(grade, gold, response)


def main(name: str) -> None:
    """Serves one grader until there are no more lines."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    grade = (GRADERS | LIBRARY)[name]()
    warm_up(grade)
    answers.write('"ready"\n')
    answers.flush()
    for line in sys.stdin:
        pairs = json.loads(line)
        warm_up(grade)
        before_ms = cpu_ms()
        rows = [graded(grade, **pair) for pair in pairs]
        answers.write(json.dumps({"rows": rows, "cpu_ms": cpu_ms() - before_ms}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
