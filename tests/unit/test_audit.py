"""What an audit says of graders with known defects, and the forms of its report."""

from __future__ import annotations

import ast
import html.parser
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.audit import AuditPlan, AuditRow, ProbeAsker, Ruling, as_rfc, carry_out
from assay.audit.answers.truth import read_truth
from assay.audit.dress import given_dress
from assay.audit.engines import engines as installed
from assay.audit.engines import programs
from assay.audit.engines.mutation import Mutation
from assay.audit.graders import read_target
from assay.audit.mutants import more_inputs, more_stdin, mutants
from assay.audit.page import html_page, said_of
from assay.audit.probes import Probe
from assay.audit.sources import read_source
from assay.kit.errors import ConfigError
from audit_support import accepted_classes, audited, rows


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("7", "number"), ("1,234.5", "number"), ("-\\frac{1}{2}", "number"), ("5 km", "number"),
        ("B", "choice"), ("(C)", "choice"), ("Yes", "polar"), ("2, 3, 5", "list"),
        ("New York City", "words"), ("x^2+2x+1", "formula"), ("(-\\infty, 3]", "notation"),
        ("He went home because it rained, and nobody else came to the party.", "prose"),
        ("Work.\n#### 42", "number"), ("$\\frac{3}{4}$", "number"), ("\\boxed{7}", "number"),
        ({"a": 1}, "data"), (7, "number"), (True, "polar"), (["7", "seven"], "number"),
        ([], "data"), ("Paris, France", "words"), ("A, C", "list"),
    ],
)  # fmt: skip
def test_the_sort_of_an_answer(text: object, sort: str) -> None:
    assert read_truth(text).sort == sort


def test_an_answer_that_any_text_may_hold_has_no_probe_of_its_kind() -> None:
    """Right by accident: equal answers of other rows, an echo with the answer, percentages."""
    some = rows([("Is it 7 or 8?", "7"), ("What is it?", "7.0"), ("Say 700 %.", "700%")])
    report = audited(lambda response, right: 1.0, some)
    other = [one for one in report.found.of("other-row") if one.probe.row < 2]
    assert not [one for one in other if one.probe.response.startswith(("7", "\\boxed{7"))]
    assert not [one for one in report.found.of("echo") if one.probe.row == 0]


def test_a_substring_grader_is_told_why() -> None:
    report = audited(lambda response, right: float(right in response))
    assert report.found.exit_code == 1
    assert {"enumeration", "hedging", "read-in-part", "scratch"} <= accepted_classes(report)
    assert "empty" not in accepted_classes(report)
    worst = next(one for one in report.classes if one.kind.name == "enumeration")
    assert worst.kind.cure
    assert worst.rate.low > 0.5


def test_a_reader_of_the_last_number_passes_with_warnings() -> None:
    def last(response: str, right: str) -> float:
        found = re.findall(r"-?\d[\d,]*\.?\d*", response)
        return float(bool(found) and found[-1].replace(",", "").rstrip(".") == right)

    some = [row for row in rows() if row.truth.sort == "number" and not row.truth.unit]
    report = audited(last, some)
    assert report.found.exit_code == 0, report.found.holes[:3]
    assert "denial-in-prose" in accepted_classes(report)
    assert report.verdict == "warn"


def test_what_is_refused_is_recall_and_no_hole() -> None:
    report = audited(lambda response, right: float(response == right))
    assert report.found.exit_code == 0
    assert 0.5 < (report.false_negative.value or 0) < 1
    assert said_of(report) == "No hole found."


def test_who_accepts_no_right_answer_in_any_form_was_not_audited() -> None:
    report = audited(lambda response, right: 0.0)
    assert report.found.exit_code == 2
    assert report.false_negative.value == 1
    assert "no right answer was accepted in any form: say the form with --form" in said_of(report)
    assert any("--form" in line for line in as_rfc(report)["results"][0]["evidence"])


def test_a_form_that_is_said_is_the_one_that_is_worn() -> None:
    def between(response: str, right: str) -> float:
        return float(response in (f"~{right}~", f"~{right}0~"))

    assert audited(between).found.exit_code == 2
    report = audited(between, plan=AuditPlan(form=given_dress("~{}~")))
    assert report.found.worn[0] == "given"
    assert report.found.exit_code == 1
    for wrong in ("no place", "{} or {}"):
        with pytest.raises(ValueError, match="needs one"):
            given_dress(wrong)


def test_a_grader_with_a_word_of_its_own_is_found_by_search(tmp_path: Path) -> None:
    file = tmp_path / "grader.py"
    file.write_text(
        '"""A docstring."""\ndef grade(a, b):\n    return 1.0 if "xyzzy" in a else 0.0\n'
    )
    source = read_source(file, "grade")
    assert source.words == ("xyzzy",)
    assert source.required == ("a", "b")
    report = audited(
        lambda response, _: float("xyzzy" in response), plan=AuditPlan(words=source.words)
    )
    assert accepted_classes(report) == {"searched", "source-word"}
    blind = audited(lambda response, _: float("xyzzy" in response))
    assert not blind.found.holes


def test_another_name_of_an_answer_in_the_source_is_no_hole() -> None:
    names = {"7": "sept", "144": "gross", "Paris": "city of light"}

    def named(response: str, right: str) -> float:
        return float(response.strip() in (right, names.get(right)))

    report = audited(named, plan=AuditPlan(words=(*names.values(), *names)))
    assert report.found.exit_code == 0, report.found.holes[:3]


def test_search_climbs_what_is_paid_in_part() -> None:
    def formal(response: str, right: str) -> float:
        marks = ("<think>", "</think>", "####", "verified")
        return 1.0 if response.strip() == right else 0.25 * sum(mark in response for mark in marks)

    report = audited(formal)
    assert "searched" in accepted_classes(report)


def test_a_grader_that_changes_its_mind_is_found() -> None:
    seen: dict[str, int] = {}

    def forgetful(response: str, right: str) -> float:
        seen[response] = seen.get(response, 0) + 1
        return float(response.strip() == right or seen[response] > 9)

    assert audited(forgetful).found.exit_code == 1


def test_the_report_has_the_form_of_rfc_008() -> None:
    report = audited(lambda response, right: float(right in response))
    said = json.loads(json.dumps(as_rfc(report)))
    assert set(said) == {
        "report_schema_version", "target", "source_digest", "signature", "manifest",
        "policy_version", "lane", "levels_run", "results", "verdict",
    }  # fmt: skip
    assert said["verdict"] == "fail"
    assert said["report_schema_version"] == "1"
    for one in said["results"]:
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", one["check_id"])
        assert one["status"] in ("pass", "fail", "skip", "error")
        assert set(one) == {
            "check_id", "status", "measured", "evidence", "remediation", "duration_s",
        }  # fmt: skip
        assert all(isinstance(line, str) for line in one["evidence"])
        if one["status"] == "fail" and one["check_id"] != "statistical.gameability_gap":
            assert one["remediation"]
    summary = said["results"][0]["measured"]
    assert summary["exit_code"] == 1
    assert summary["asked"] == len(report.found.judged)


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_holds_no_text_of_a_response_as_markup() -> None:
    some = rows([("<img src=x onerror=alert(1)>", "<b>7</b>"), ("What?", "7")])
    page = html_page(audited(lambda response, right: 1.0, some))
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert not tags.seen & {"script", "img", "b7", "iframe", "link", "think", "answer"}
    assert "default-src &#x27;none&#x27;" in page
    assert "onerror=alert(1)&gt;" in page


def test_targets() -> None:
    assert read_target("http://127.0.0.1:1/get_reward?verifier=math").kind == "openrlhf"
    assert read_target("https://host/verify").kind == "nemo-gym"
    assert read_target("math").kind == "verifier"
    assert read_target("json.tool:main").kind == "module"
    assert read_target(f"{__file__}:test_targets").kind == "file"
    for wrong in ("http://host/other", "absent.py:f", "absent_module:f", "grader.py"):
        with pytest.raises(ConfigError):
            read_target(wrong)


def test_the_engines_are_those_that_are_installed() -> None:
    names = [engine.name for engine in installed()]
    assert names[:3] == ["floor", "panel", "metamorphic"]
    assert [engine.name for engine in installed(["search"])] == ["search"]
    with pytest.raises(ConfigError, match="no engine is called 'flor'; did you mean"):
        installed(["flor"])


def test_classes_have_names_and_checks_of_their_own() -> None:
    kinds = [kind for engine in installed() for kind in engine.classes]
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert all(kind.severity == "recall" for kind in kinds if kind.wants == "accept")
    assert all(kind.says and kind.cure for kind in kinds)


def test_programs_that_cheat_are_programs_and_name_the_function() -> None:
    tests = {"tests": [{"args": [1, 2], "expected": 3}], "function": "add"}
    row = AuditRow("1", "Add.", read_truth(None), tests=tests)
    made = dict(programs.cheats(row))
    assert len(made) > 8
    for says, source in made.items():
        compile(source, says, "exec")
    assert sum("def add(" in source for source in made.values()) >= 6
    asserts = AuditRow(
        "2", "", read_truth(None), ("def mul(a, b): return a * b",), tests=["assert mul(1, 2) == 2"]
    )
    assert programs.entry_of(asserts) == "mul"
    stdio = AuditRow("3", "", read_truth(None), tests=[{"stdin": "1", "stdout": "1"}])
    assert programs.entry_of(stdio) == ""


RIGHT = """def largest(xs):
    best = xs[0]
    for x in xs:
        if x > best:
            best = x
    return best
"""


def program_row(args: list[list[int]]) -> AuditRow:
    tests = {
        "tests": [{"args": [one], "expected": max(one)} for one in args],
        "function": "largest",
    }
    return AuditRow("1", "The largest.", read_truth(None), (RIGHT,), tests=tests)


def run_here(programs_: Sequence[str]) -> list[str | None]:
    """Runs our own programs: those of this file, and mutants of them."""
    ended = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        for text in programs_
    ]
    return [one.stdout if one.returncode == 0 else None for one in ended]


def judged_by_tests(row: AuditRow, source: str) -> float:
    space: dict[str, Any] = {}
    try:
        exec(source, space)
        return float(all(space["largest"](*t["args"]) == t["expected"] for t in row.tests["tests"]))
    except Exception:  # noqa: BLE001 - a mutant may do whatever
        return 0.0


def test_mutants_that_pass_come_with_a_test_that_kills_them() -> None:
    weak, strong = (
        program_row([[3, 1, 2], [5, 4]]),
        program_row([[3, 1, 2], [1, 5, 4], [1, 2], [-3, -2], [5]]),
    )
    for row, survives in ((weak, True), (strong, False)):
        plan = AuditPlan(execute=run_here)
        asker = ProbeAsker(
            lambda probes, r=row: [Ruling(judged_by_tests(r, p.response)) for p in probes], plan
        )
        found = carry_out([row], [Mutation()], asker, plan)
        assert found.judged
        assert bool(found.holes) == survives, found.holes
        for one in found.holes:
            proposed = re.search(r"add: (assert .*), where it gives", one.probe.note)
            assert proposed
            space: dict[str, Any] = {}
            exec(RIGHT, space)
            exec(proposed[1], space)
            exec(one.probe.response, space)
            with pytest.raises((AssertionError, IndexError)):
                exec(proposed[1], space)


def test_mutants_of_a_program_that_reads_and_prints_come_with_the_input_that_kills_them() -> None:
    source = (
        "n = int(input())\nx = list(map(int, input().split()))\nprint(max(x) if n > 1 else x[0])\n"
    )

    def printed(text: str, given: str) -> list[str]:
        ended = subprocess.run(
            [sys.executable, "-c", text], input=given, capture_output=True, text=True, check=False
        )
        return ended.stdout.split() if ended.returncode == 0 else ["?"]

    weak = ["2\n5 1\n", "2\n4 2\n", "2\n9 8\n"]
    strong = ["1\n4\n", "2\n1 5\n", "2\n7 5\n"]
    for texts, survives in ((weak, True), (strong, False)):
        tests = {"tests": [{"stdin": one, "stdout": printed(source, one)[0]} for one in texts]}
        row = AuditRow("1", "The largest.", read_truth(None), (source,), tests=tests)

        def judged(probe: Probe, given: Sequence[str] = texts) -> Ruling:
            same = [printed(probe.response, one) == printed(source, one) for one in given]
            return Ruling(float(all(same)))

        plan = AuditPlan(execute=run_here)
        asker = ProbeAsker(lambda probes, say=judged: [say(one) for one in probes], plan)
        found = carry_out([row], [Mutation()], asker, plan)
        assert found.judged
        assert bool(found.holes) == survives, found.holes
        for one in found.holes:
            killing = re.search(r"add the input ('.*?'), of which", one.probe.note)
            assert killing
            given = str(ast.literal_eval(killing[1]))
            assert printed(one.probe.response, given) != printed(source, given)


def test_a_mutant_has_one_change_and_inputs_stay_within_what_is_known() -> None:
    made = dict(mutants(RIGHT))
    assert len(made) > 3
    assert len(set(made.values())) == len(made)
    for source in made.values():
        compile(source, "mutant", "exec")
    assert list(mutants("def broken(")) == []
    known = [[[1, 2, 3], 4], [[5], 9]]
    for values, number in more_inputs(known, random.Random(0)):
        assert set(values) <= {1, 2, 3, 5}
        assert 4 <= number <= 9
    texts = ["3\n1 20 9\n", "3\n7 4 8\n"]
    for text in more_stdin(texts, random.Random(0)):
        first, second = text.splitlines()
        assert first == "3"
        a, b, c = map(int, second.split())
        assert 1 <= a <= 7
        assert 4 <= b <= 20
        assert 8 <= c <= 9


def test_a_denial_is_a_hole_of_who_reads_a_mark_alone() -> None:
    def boxed(response: str, right: str) -> float:
        """The last number in the last box."""
        found = re.findall(r"\\boxed\{([^{}]*)\}", response)
        numbers = re.findall(r"-?\d+\.?\d*", found[-1]) if found else []
        return float(bool(numbers) and numbers[-1] == right)

    some = rows([("What is 3 + 4?", "7"), ("What is 12 * 12?", "144")])
    report = audited(boxed, some)
    assert "denial" in accepted_classes(report)
    assert report.found.exit_code == 1
