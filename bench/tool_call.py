"""`tool-call` beside the checker of the Berkeley Function-Calling Leaderboard, on its own rows.

Every row of the AST categories is answered as a model might: each right answer in one of the
formats of `tool_formats` (by turns, so that every format meets every category), and answers that
differ: another value of an argument, another type, one left out, one more, another name, spelling
and punctuation, calls in another order, one call fewer or twice. The official checker gets the
calls as data; Assay reads them from the response's text, with the row as its reference. Every
disagreement is counted under what was changed, and `--show` prints some.

The package is looked for in the folder that ASSAY_BENCH_BFCL names (`pip install --no-deps
--target FOLDER bfcl-eval`); its checker is entered without its table of models, which would load
the clients of every provider.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.reward_server.domain import Candidate, VerifierItem
from assay.reward_server.verifiers.tool_call import tool_call
from bench.tool_formats import RENDERERS, Call

CATEGORIES = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "simple_java",
    "simple_javascript",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
WITHOUT = ("irrelevance", "live_irrelevance", "live_relevance")
SILENT = (
    "None of the functions can do that.",
    "I would need `get_weather(city)`, and the functions given have no city: which one is it?",
    "Please tell me the base and the height of the triangle.",
    '{"answer": "no function fits"}',
)
Check = Callable[[list[Any], list[Any], list[Any], str, str], bool | None]


@dataclass(frozen=True)
class Row:
    """A row of a category: its functions and its right answers."""

    name: str
    category: str
    functions: list[dict[str, Any]]
    truth: list[dict[str, Any]]

    @property
    def language(self) -> str:
        """The language of its values."""
        last = self.category.rpartition("_")[2]
        return last if last in ("java", "javascript") else "python"


def official(folder: str) -> Check:
    """The package's `ast_checker`; None where it raises."""
    sys.path.insert(0, folder)
    table = types.ModuleType("bfcl_eval.constants.model_config")

    class _Models(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return types.SimpleNamespace(underscore_to_dot=False)

    table.MODEL_CONFIG_MAPPING = _Models()  # type: ignore[attr-defined]  # what the checker reads
    sys.modules["bfcl_eval.constants.model_config"] = table
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    language = importlib.import_module("bfcl_eval.constants.enums").Language

    def check(functions: list[Any], made: list[Any], truth: list[Any], spoken: str, c: str) -> Any:
        try:
            found = checker.ast_checker(functions, made, truth, language(spoken), c, "any")
        except Exception:  # noqa: BLE001  # it raises on some values
            return None
        return bool(found["valid"])

    return check


def read_rows(folder: Path, category: str) -> list[Row]:
    """The rows of a category with their answers."""
    data = folder / "bfcl_eval" / "data"
    rows = _lines(data / f"BFCL_v4_{category}.json")
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    truth = {one["id"]: one["ground_truth"] for one in _lines(answers)} if answers.exists() else {}
    return [
        Row(row["id"], category, row["function"], truth.get(row["id"], []))
        for row in rows
        if not answers.exists() or row["id"] in truth
    ]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def plain(value: Any) -> Any:
    """The first of BFCL's values, objects of lists among them resolved."""
    if isinstance(value, dict):
        return {
            key: plain(choices[0])
            for key, choices in value.items()
            if isinstance(choices, list) and choices and choices[0] != ""
        }
    return [plain(one) for one in value] if isinstance(value, list) else value


def right_calls(row: Row, draw: random.Random) -> list[Call]:
    """Calls that the row's answers allow; arguments that may be left out are, now and then."""
    calls = []
    for entry in row.truth:
        ((name, answers),) = entry.items()
        given = {}
        for key, choices in answers.items():
            real = [one for one in choices if one != ""]
            if real and ("" not in choices or draw.random() < 0.5):
                given[key] = in_source(plain(draw.choice(real)), row.language)
        calls.append((name, given))
    return calls


def in_source(value: Any, language: str) -> Any:
    """A value as the source code of Java or JavaScript, in which their rows have arguments."""
    if language == "python" or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if language == "javascript":
        return json.dumps(value)
    if isinstance(value, list):
        return "new ArrayList<>(Arrays.asList(" + ", ".join(map(json.dumps, value)) + "))"
    puts = " ".join(f"put({json.dumps(key)}, {json.dumps(one)});" for key, one in value.items())
    return f"new HashMap<String, Object>() {{{{ {puts} }}}}"


def changed(calls: list[Call], draw: random.Random) -> Iterator[tuple[str, list[Call]]]:
    """Answers that differ from one, and what is different."""

    def with_arguments(index: int, given: dict[str, Any], name: str = "") -> list[Call]:
        out = list(calls)
        out[index] = (name or calls[index][0], given)
        return out

    yield "nothing", calls
    at = draw.randrange(len(calls)) if calls else 0
    name, given = calls[at]
    yield "the name", with_arguments(at, given, name + "_v2")
    yield "one more argument", with_arguments(at, {**given, "verbose_flag": True})
    if len(calls) > 1:
        yield "the order of calls", calls[::-1]
        yield "one call fewer", calls[:-1]
    yield "one call twice", [*calls, calls[at]]
    for key in given:
        rest = {one: value for one, value in given.items() if one != key}
        yield "one argument left out", with_arguments(at, rest)
        for what, value in variants(given[key]):
            yield what, with_arguments(at, {**given, key: value})


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of an argument."""
    if isinstance(value, bool):
        yield "another truth value", not value
        yield "a truth value as a number", int(value)
        yield "a truth value as a text", str(value)
    elif isinstance(value, int | float):
        yield "another number", value + 1
        yield "a number as a text", str(value)
        yield "a whole number as a float", float(value)
        yield "a number as a list", [value]
    elif isinstance(value, str):
        yield "another text", value + " x"
        yield "a text in capitals", value.upper()
        yield "a text with punctuation", f"{value},".replace(" ", "-")
        yield "a text as a list", [value]
        yield "an empty text", ""
    elif isinstance(value, list):
        yield "a list the other way round", value[::-1]
        yield "a list with one more", [*value, *value[:1]]
        yield "an empty list", []
        yield "a list as a text", json.dumps(value)
    elif isinstance(value, dict):
        yield "an object with one more", {**value, "extra": 1}
        yield "an object with one less", dict(list(value.items())[1:])
        yield "an object as a text", json.dumps(value)


def assay(response: str, reference: Any) -> bool:
    """Whether the verifier finds it all right."""
    parameters = tool_call.spec.complete({})
    item = VerifierItem(Candidate(response), data=reference, parameters=parameters)
    return tool_call.judge(item).reward == 1.0


def compare(folder: Path, *, most: int, shown: int) -> None:
    """Prints the agreement by category and by what was changed."""
    check = official(str(folder))
    by_category: Counter[tuple[str, bool]] = Counter()
    by_change: Counter[tuple[str, str]] = Counter()
    by_format: Counter[tuple[str, bool]] = Counter()
    differing: list[tuple[str, ...]] = []
    spent_us: list[float] = []
    formats = list(RENDERERS)
    turn = 0
    for category in CATEGORIES:
        for row in read_rows(folder, category)[:most]:
            draw = random.Random(row.name)
            reference = {
                "ground_truth": row.truth, "function": row.functions, "language": row.language
            }  # fmt: skip
            for what, calls in changed(right_calls(row, draw), draw):
                made = [{name: given} for name, given in calls]
                theirs = check(row.functions, made, row.truth, row.language, category)
                turn += 1
                writer = formats[turn % len(formats)]
                if not writable(calls, writer) or (
                    writer in UNTYPED_WRITERS and what.endswith("as a text")
                ):
                    writer = "hermes"
                started_ns = time.perf_counter_ns()
                ours = assay(response := RENDERERS[writer][1](calls), reference)
                spent_us.append((time.perf_counter_ns() - started_ns) / 1e3)
                same = theirs is ours
                by_category[category, same] += 1
                by_format[writer, same] += 1
                kind = "agree" if same else "official raised" if theirs is None else "differ"
                by_change[what, kind] += 1
                if not same:
                    differing.append((what, writer, row.name, str(theirs), str(ours), response))
    print(f"{'category':24} {'answers':>8} {'agree':>8}")
    for category in CATEGORIES:
        good, bad = by_category[category, True], by_category[category, False]
        print(f"{category:24} {good + bad:8} {100 * good / (good + bad):7.2f} %")
    good, bad = (sum(n for (_, same), n in by_category.items() if same is x) for x in (True, False))
    print(f"{'all':24} {good + bad:8} {100 * good / (good + bad):7.2f} %")
    print("what was changed, where they differ: agree, differ, the official checker raised")
    for what in sorted({what for what, _ in by_change}):
        counts = [by_change[what, kind] for kind in ("agree", "differ", "official raised")]
        if sum(counts[1:]):
            print(f"  {what:32} {counts[0]:6} {counts[1]:6} {counts[2]:6}")
    worst = sorted(formats, key=lambda one: -by_format[one, False])[:5]
    print("formats with most: " + ", ".join(f"{one} {by_format[one, False]}" for one in worst))
    print(
        f"CPU of an answer, us: median {statistics.median(spent_us):.0f}, worst {max(spent_us):.0f}"
    )
    for line in random.Random(0).sample(differing, min(shown, len(differing))):
        print(" | ".join(line)[:700])


UNTYPED_WRITERS = frozenset(
    name for name, (dialect, _) in RENDERERS.items() if dialect in ("qwen-coder", "glm")
) | {"anthropic", "anthropic, prefixed", "minimax m2", "step 3"}


def writable(calls: list[Call], writer: str) -> bool:
    """Whether a format can tell the values: one without types cannot tell "3" from 3."""
    if writer in UNTYPED_WRITERS:
        return all(
            isinstance(v, str) and v == v.strip() for _, given in calls for v in given.values()
        )
    if RENDERERS[writer][0] == "pythonic":
        return all(key.isidentifier() for _, given in calls for key in given)
    if writer in ("gemma 4", "functiongemma"):
        return "<escape>" not in str(calls)
    return writer != "react" or all("\n" not in name for name, _ in calls)


def restraint(folder: Path, *, most: int) -> None:
    """Prints how rows without a fitting function are judged."""
    for category in WITHOUT:
        rows = read_rows(folder, category)[:most]
        wants_call = category == "live_relevance"
        reference = {"calls": "any" if wants_call else []}
        right = wrong = 0
        for number, row in enumerate(rows):
            silent = assay(SILENT[number % len(SILENT)], reference)
            name = str(row.functions[0]["name"]) if row.functions else "any_function"
            writer = list(RENDERERS)[number % len(RENDERERS)]
            called = assay(RENDERERS[writer][1]([(name, {})]), reference)
            right += (silent is not wants_call) + (called is wants_call)
            wrong += (silent is wants_call) + (called is not wants_call)
        print(f"{category:24} {right + wrong:8} answers, {right} as wanted")


def run(arguments: list[str]) -> None:
    """Compares; says what to install where the package is not there."""
    parser = argparse.ArgumentParser(prog="python -m bench tool-call", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="at most, of each category")
    parser.add_argument("--show", type=int, default=0, help="disagreements to print")
    chosen = parser.parse_args(arguments)
    folder = os.environ.get("ASSAY_BENCH_BFCL", "")
    if not Path(folder, "bfcl_eval", "data").is_dir():
        print(
            "bench tool-call: set ASSAY_BENCH_BFCL to a folder with bfcl_eval "
            "(pip install --no-deps --target FOLDER bfcl-eval)"
        )
        return
    compare(Path(folder), most=chosen.rows, shown=chosen.show)
    restraint(Path(folder), most=chosen.rows)
