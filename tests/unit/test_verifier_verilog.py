"""`verilog-equivalence`: what does the same passes, by proof or simulation, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.execution import Execution, Output
from assay.reward_server.domain import (
    Candidate,
    Fault,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.verifiers import verilog_runner
from assay.reward_server.verifiers.commands import Clock
from assay.reward_server.verifiers.verilog import (
    _SPEC,
    MAX_CHARS,
    VerilogVerifier,
    find_module,
    outcome_of,
    reference_of,
)
from assay.reward_server.verifiers.verilog_runner import (
    Port,
    Yosys,
    bench,
    first_difference,
    modules_of,
    pins_of,
    ports_of,
    refused,
    start,
    wiring_trouble,
    without_comments,
)
from checkers_support import CIRCUITS, accepted, compare, needs

SLOW = {"a huge loop", "a huge memory", "an endless loop of a function"}
AND = "module top(input a, b, output y);\n  assign y = a & b;\nendmodule"
BEYOND = {"one input of 131072 differs"}
"""What a thousand random vectors do not find."""


def by_case(row: dict[str, Any]) -> str:
    return str(row["case"])


def found(row: dict[str, Any], **changes: Any) -> tuple[bool, dict[str, Any]]:
    """Whether a row is accepted, and what the program says of it."""
    seconds = 1.0 if row["case"] in SLOW else 3.0
    lines = compare(row, seconds=seconds, **changes)
    assert lines[0] == {"gold": {"step": "done"}}
    said = lines[1]["candidate"]
    kept = said.get("evidence") == "proof" or row.get("evidence") != "proof"
    return accepted(lines) and kept, said


@pytest.mark.slow
@needs("yosys", "iverilog")
@pytest.mark.parametrize("row", CIRCUITS, ids=by_case)
def test_circuits(row: dict[str, Any]) -> None:
    same, said = found(row)
    assert same is (row["kind"] == "right"), said
    if row["case"] in SLOW:
        assert "undecided" in said


@pytest.mark.slow
@needs("iverilog")
@pytest.mark.parametrize(
    "row", [row for row in CIRCUITS if row.get("initial") != "zero"], ids=by_case
)
def test_circuits_by_simulation_alone(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for tool in ("iverilog", "vvp"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    same, said = found(row)
    assert same is (row["kind"] == "right" or row["case"] in BEYOND), said
    assert not same or said["evidence"] == "simulated"


@pytest.mark.slow
@needs("yosys", "iverilog")
def test_a_proof_is_told_from_what_is_bounded_and_simulated() -> None:
    evidence = {
        row["case"]: found(row)[1]["evidence"]
        for row in CIRCUITS
        if row["case"] in ("nor of nots", "a counter of another style", "a multiplier of halves")
    }
    assert evidence == {
        "nor of nots": "proof",
        "a counter of another style": "proof",
        "a multiplier of halves": "simulated",
    }


@needs("yosys")
@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ("module top(input clk, output reg q); always @(posedge clk) q <= ~q; endmodule", "never"),
        ("module top(input a, output y); magic m(a, y); endmodule", "magic"),
        ("module top(input a, output y); wire x; assign x = ~(x & a), y = x; endmodule", "SCC"),
        ("module top(inout a, output y); assign y = a; endmodule", "both input and output"),
        ("module top(input a output y); endmodule", "syntax"),
    ],
)
def test_a_reference_that_cannot_be_used_is_a_fault(gold: str, words: str) -> None:
    [line] = compare({"gold": gold, "gate": gold})
    assert words in line["gold"]["trouble"]


@needs("yosys")
def test_ports_are_read_as_yosys_reads_them() -> None:
    for gold in sorted({row["gold"] for row in CIRCUITS}):
        with tempfile.TemporaryDirectory() as folder:
            yosys = Yosys(Path(folder), "top", "zero", 5, 1)
            assert yosys.read(gold, "gold", Clock(10.0)) == ports_of(gold, "top")
    text = CIRCUITS[4]["gold"]
    assert ports_of(text, "top") == [
        Port("clk", True, 1), Port("rst_n", True, 1), Port("en", True, 1), Port("q", False, 4),
        Port("z", False, 1),
    ]  # fmt: skip


def test_ports_of_both_styles_of_headers() -> None:
    old = (
        "module top(a, b, y, z);\n  input [7:0] a, b; // input c\n  input signed clk;\n"
        "  output reg [W-1:0] y; output z;\n"
        "  function f; input q; f = q; endfunction\nendmodule\nmodule other(input x); endmodule"
    )
    assert ports_of(old, "top") == [
        Port("a", True, 8), Port("b", True, 8), Port("clk", True, 1), Port("y", False, 256),
        Port("z", False, 1),
    ]  # fmt: skip
    assert modules_of(old) == ["top", "other"]


def test_a_tool_that_is_missing_is_a_fault_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [line] = compare(CIRCUITS[0])
    outcome = outcome_of(executed(line), {"gate": ""}, needs_proof=False)
    assert isinstance(outcome, Fault)
    assert outcome.reason == "UNSUPPORTED_INPUT"
    assert "yosys" in outcome.message
    assert "iverilog" in outcome.message


def test_forged_modules_are_refused_by_their_words() -> None:
    """Without a tool. The others are wrong by what they compute, which only a tool can tell."""
    kept = {row["case"] for row in CIRCUITS if not refused(row["gate"])}
    assert {row["case"] for row in CIRCUITS if row["kind"] != "forged"} <= kept
    words = [row["case"] for row in CIRCUITS if refused(row["gate"])]
    assert len(words) == 23
    for text in (
        "`include \"x\"", "`X", "`define X 1\n`Y", "a``b", "`\"", "$fwrite(1)", "$ finish", "(*x*)",
        "\\a ", "//\n$time", "/**/ $stop",
        '"a" $exit', '"\\"" $exit', "/* */ (* a *)", "force x = 1",
        "/* \" */ $finish /* \" */", "// \\\n$finish", "'h$x",
    ):  # fmt: skip
        assert refused(text), text
    for text in ("always @(*)", "always @( * )", "// $finish", "/* `include */", '"$finish"',
                 "`define A 1\n`A", "$clog2(3)", "$signed(a)", "a * (b)"):  # fmt: skip
        assert not refused(text), text


@given(st.text(alphabet='/*"\\\n$a (`', max_size=40))
def test_what_is_taken_out_hides_no_system_call(text: str) -> None:
    """A call stays in sight wherever a reader of Verilog sees code."""
    code = without_comments(text)
    assert "//" not in code or "/*" in code
    if not re.search(r'["/\\]', text):
        assert code == text
    shown = without_comments("\n" + code.replace('"', " "))
    assert ("$" in shown) is ("$" in code)


def test_a_netlist_that_would_bend_the_question_is_refused() -> None:
    """Without a tool: what Yosys writes, with one thing changed."""

    def netlist(kind: str = "$and", y: object = 4, a: object = 2) -> dict[str, Any]:
        cell = {
            "type": kind,
            "port_directions": {"A": "input", "B": "input", "Y": "output"},
            "connections": {"A": [2], "B": [3], "Y": [y]},
        }
        ports = {"a": ("input", a), "b": ("input", 3), "y": ("output", 4)}
        return {
            "ports": {
                name: {"direction": way, "bits": [bit]} for name, (way, bit) in ports.items()
            },
            "cells": {"c": cell},
        }

    assert not wiring_trouble(netlist())
    for changed in (
        netlist("gold"), netlist("$anyconst"), netlist("$assume"), netlist("$assert"),
        netlist(y="1"), netlist(y="x"), netlist(y=2), netlist(a="1"), netlist(a=3),
    ):  # fmt: skip
        assert wiring_trouble(changed)
    both = netlist()
    both["cells"]["d"] = both["cells"]["c"]
    assert "twice" in wiring_trouble(both)


def test_clocks_and_resets_are_told_from_data() -> None:
    text = "always @(posedge clk or negedge arst_n) x; always @(posedge strobe) y;"
    names = ("clk", "arst_n", "strobe", "sync_reset", "d", "preset", "clear_b", "reset")
    ports = [Port(name, True, 1) for name in names] + [Port("rst", True, 8), Port("q", False, 1)]
    pins = pins_of(ports, text)
    assert pins.clocks == ("clk", "strobe")
    assert pins.resets == {
        "arst_n": "1'b0", "sync_reset": "1'b1", "preset": "1'b1", "clear_b": "1'b0",
        "reset": "1'b1",
    }  # fmt: skip
    assert pins_of(ports, "assign x = clk & reset;") == verilog_runner.Pins((), {})
    assert "in_arst_n(go ? arst_n : 1'b0)" in start(ports, pins, "t", "m")
    assert "in_clk(go ? clk : n[0])" in start(ports, pins, "t", "m")
    assert ".in_d(d)" in start(ports, pins, "t", "m")
    assert bench(ports, pins, "top", 9, 3) != bench(ports, pins, "top", 9, 4)


@given(st.lists(st.text(alphabet="01xz ", min_size=1, max_size=6), max_size=6))
def test_differences_are_of_bits_that_the_reference_defines(lines: list[str]) -> None:
    assert not first_difference(lines, lines)
    loose = [re.sub("[xz]", "1", line) for line in lines]
    assert not first_difference(lines, loose)
    for number, line in enumerate(lines):
        for place, bit in enumerate(line):
            if bit in "01":
                other = line[:place] + {"0": "1", "1": "x"}[bit] + line[place + 1 :]
                assert first_difference(lines, [*lines[:number], other, *lines[number + 1 :]])
    assert first_difference(lines, [*lines, "0"])
    if any(set(line) & {"0", "1"} for line in lines):
        assert first_difference(lines, [])


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ({"module": 3}, '"module"'),
        ({"module": " "}, '"module"'),
        ({"module": AND, "top": "other"}, "one of its modules"),
        ({"module": f"{AND}\n{AND.replace('top', 'two')}"}, 'in "top"'),
        ([AND], "must be a module"),
    ],
)
def test_references_that_cannot_be_used_say_why(reference: JsonValue, words: str) -> None:
    with pytest.raises(Unjudgeable, match=re.escape(words)) as caught:
        reference_of(item("", reference))
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_the_module_that_no_other_holds_is_meant() -> None:
    both = f"{AND}\nmodule outer(input a, output y); top t(a, a, y); endmodule // top outer\n"
    assert reference_of(item("", {"module": both})) == (both, "outer")
    assert reference_of(item("", {"module": both, "top": "top"})) == (both, "top")
    text = VerifierItem(Candidate(""), (AND,), parameters=_SPEC.complete({}))
    assert reference_of(text) == (AND, "top")


def test_modules_are_found_in_responses() -> None:
    assert find_module(f"Thus:\n```verilog\n{AND}\n```", "last") == AND + "\n"
    assert find_module(f"<think>```v\nx\n```</think>\n{AND}", "last") == "\n" + AND
    assert find_module("The module is an AND.", "last") is None
    long = VerilogVerifier(None).task_of(item("module " + "a" * MAX_CHARS + " endmodule", AND_DATA))  # type: ignore[arg-type]
    assert isinstance(long, Judgement)
    assert long.verdict == "incorrect"


DONE = {"gold": {"step": "done"}}


@pytest.mark.parametrize(
    ("lines", "end", "expected"),
    [
        ([DONE, {"candidate": {"trouble": "", "evidence": "proof"}}], "exited", "correct"),
        ([DONE, {"candidate": {"trouble": "", "evidence": "both"}}], "exited", "correct"),
        ([DONE, {"candidate": {"trouble": "differs", "evidence": "both"}}], "exited", "incorrect"),
        ([DONE, {"candidate": {"undecided": "late"}}], "exited", "undecided"),
        ([DONE], "memory-limit", "undecided"),
        ([DONE], "exited", "incorrect"),
        ([], "memory-limit", "UNUSABLE_REFERENCE"),
        ([], "exited", "VERIFIER_FAILED"),
        ([{"gold": {"step": "module", "trouble": "no"}}], "exited", "UNUSABLE_REFERENCE"),
    ],
)
def test_no_module_can_choose_a_fault(lines: list[Any], end: str, expected: str) -> None:
    task: dict[str, JsonValue] = {"gate": "x", "cycles": 12, "vectors": 100}
    outcome = outcome_of(executed(*lines, end=end), task, needs_proof=False)
    assert (outcome.reason if isinstance(outcome, Fault) else outcome.verdict) == expected


@pytest.mark.parametrize("evidence", ["proof", "bounded", "both", "simulated"])
def test_the_evidence_is_said_and_a_proof_may_be_asked_for(evidence: str) -> None:
    task: dict[str, JsonValue] = {"gate": "x", "cycles": 12, "vectors": 100}
    line = {"candidate": {"trouble": "", "evidence": evidence}}
    loose = outcome_of(executed(DONE, line), task, needs_proof=False)
    strict = outcome_of(executed(DONE, line), task, needs_proof=True)
    assert isinstance(loose, Judgement)
    assert isinstance(strict, Judgement)
    assert loose.verdict == "correct"
    assert ("no proof" in loose.explanation) is (evidence != "proof")
    assert strict.verdict == ("correct" if evidence == "proof" else "undecided")
    assert loose.reward == 1.0
    assert {part.name: part.score for part in loose.components}["proven"] == (evidence == "proof")


AND_DATA: JsonValue = {"module": AND}


def item(response: str, reference: JsonValue) -> VerifierItem:
    return VerifierItem(Candidate(response), data=reference, parameters=_SPEC.complete({}))


def executed(*lines: Any, end: str = "exited") -> Execution:
    text = "\n".join(map(json.dumps, lines)).encode()
    return Execution(end, 0, stdout=Output(text, total_bytes=len(text)))
