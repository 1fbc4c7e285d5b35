"""What runs in the sandbox for `verilog-equivalence`: two modules, and whether they do the same.

The server never imports this module; it sends its text as a program, with the task as JSON on
stdin. It writes one JSON object per line: `{"gold": ...}` when the reference has been read, then
`{"candidate": ...}`, whose "evidence" is "proof", "bounded", "simulated" or "both" of the last.

By Yosys: each module is read in a process of its own and becomes a netlist without names or texts
of the other's, clocks as inputs (`clk2fflogic`), loops refused; a SAT solver then looks for inputs
on which a defined output of the reference differs, and proves by induction that there are none.
Verdicts are exit codes. What the solver does not prove is simulated too, by Icarus Verilog: each
module in a process of its own, random inputs from a secret seed, outputs compared here. Without
Yosys all is simulated.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.reward_server.verifiers.commands import SHOWN, Clock, Late, StepFailed

Write = Callable[[dict[str, Any]], object]

_WIDE = 256
_RESET_ODDS = 64
_TIMED_OUT = "proof did time out!"
_FAILED = "proof did fail!"
_SKIPPED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_PURE = "clog2|signed|unsigned|bits|countones|onehot|onehot0|isunknown|high|low|left|right|size"
# System calls but pure ones, attributes, escaped names, files, and what speaks of no circuit.
_REFUSED = re.compile(
    rf"\$(?!(?:{_PURE})\b)|\(\*(?!\s*\))|\\\S|`(?![A-Za-z_])"
    r"|\b(?:assume|assert|restrict|cover|property|sequence|bind|force|release|primitive|specify"
    r"|export|program|checker|wait|fork|deassign|config|library|endconfig)\b"
)
_MACRO = re.compile(r"`(\w+)")
_DIRECTIVES = frozenset((
    "define", "undef", "ifdef", "ifndef", "elsif", "else", "endif", "timescale", "default_nettype",
    "resetall",
))  # fmt: skip
_RESET = re.compile(r"(?:^|_)(?:a?s?y?n?c?_?)(?:rst|reset|clr|clear|preset)", re.IGNORECASE)
_CLOCK = re.compile(r"(?:^|_)(?:clk|clock|ck)", re.IGNORECASE)
_LOW = re.compile(r"(?:_n|n|_b|_l)$", re.IGNORECASE)
_WORDS = frozenset((
    "input", "output", "inout", "wire", "reg", "logic", "signed", "unsigned", "var", "integer",
    "int", "bit", "tri", "wand", "wor",
))  # fmt: skip


@dataclass(frozen=True)
class Port:
    """A port of the module; bits of a width that is not known are `_WIDE`."""

    name: str
    is_input: bool
    bits: int


@dataclass(frozen=True)
class Pins:
    """Inputs that are no data: clocks, and resets with the level at which they reset."""

    clocks: tuple[str, ...]
    resets: dict[str, str]


def pins_of(ports: Sequence[Port], text: str) -> Pins:
    """Which inputs of the reference are resets, by their names, and clocks, by its edges."""
    sensed = set(re.findall(r"\b(?:posedge|negedge)\s+(\w+)", without_comments(text)))
    single = [port.name for port in ports if port.is_input and port.bits == 1]
    resets = {
        name: "1'b0" if _LOW.search(name) else "1'b1"
        for name in single
        if sensed and _RESET.search(name)
    }
    clocks = [
        name
        for name in single
        if name not in resets and (name in sensed or (sensed and _CLOCK.search(name)))
    ]
    return Pins(tuple(clocks), resets)


def without_comments(text: str) -> str:
    """A module's text with comments and the contents of texts taken out."""
    return _SKIPPED.sub(lambda found: '""' if found[0].startswith('"') else " ", text)


def refused(text: str) -> str:
    """What of a module is no plain logic: system calls, files, attributes, assumptions."""
    code = without_comments(text)
    found = _REFUSED.search(code)
    if found:
        return code[found.start() : found.start() + 20].split("\n")[0]
    defined = set(re.findall(r"`define\s+(\w+)", code)) | _DIRECTIVES
    unknown = [name for name in _MACRO.findall(code) if name not in defined]
    return f"`{unknown[0]}" if unknown else ""


def modules_of(text: str) -> list[str]:
    """Names of the modules of a text, in order."""
    return re.findall(r"\bmodule\s+(?:automatic\s+|static\s+)?(\w+)", without_comments(text))


def ports_of(text: str, top: str) -> list[Port]:
    """The ports that a module's text declares, for a machine without Yosys."""
    code = without_comments(text)
    found = re.search(rf"\bmodule\s+{re.escape(top)}\b(.*?)\bendmodule\b", code, re.DOTALL)
    body = re.sub(
        r"\b(function|task)\b.*?\bend\1\b", " ", found[1] if found else "", flags=re.DOTALL
    )
    ports: dict[str, Port] = {}
    for part in re.split(r"\b(?=(?:input|output|inout)\b)", body)[1:]:
        declared = re.split(r"[;)=]", re.sub(r"\[[^\]]*\]", _keep_range, part))[0]
        is_input = part.startswith("input")
        width = re.search(r"<(\d+)>", declared)
        bits = int(width[1]) if width else (_WIDE if "<>" in declared else 1)
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"<\d*>", " ", declared)):
            if name not in _WORDS:
                ports.setdefault(name, Port(name, is_input, bits))
    return list(ports.values())


def _keep_range(found: re.Match[str]) -> str:
    """A range as its width in angles, empty where it is no pair of numbers."""
    numbers = re.fullmatch(r"\[\s*(\d+)\s*:\s*(\d+)\s*\]", found[0])
    return f"<{abs(int(numbers[1]) - int(numbers[2])) + 1}>" if numbers else "<>"


# Yosys --------------------------------------------------------------------------------------------


class Yosys:
    """Both netlists, and what the solver says of them.

    Args:
        folder: of the files; the reference's text is not there while the response's is read.
        top: the module's name.
        initial: "undef" or "zero", the registers' values before the first step.
        steps: a clock takes two.
    """

    def __init__(self, folder: Path, top: str, initial: str, steps: int, solver_s: int) -> None:
        self._folder, self._top, self._steps = folder, top, steps
        self._initial, self._solver_s = initial, solver_s
        self._secret = f"{random.SystemRandom().getrandbits(64):x}"

    def read(self, text: str, name: str, clock: Clock) -> list[Port]:
        """Reads a module ("gold" or "gate"), writes its netlist, and says which ports it has."""
        source, name = self._folder / f"{name}.v", self._named(name)
        source.write_text(text, "utf-8", "replace")
        script = (
            f"read_verilog -sv -noassert -noassume {source.name}; "
            f"hierarchy -check -top {self._top}; proc; flatten; rename {self._top} {name}; "
            f"write_json {name}.json; memory; opt_clean; clk2fflogic; opt_clean; "
            "design -save whole; techmap; opt_clean; scc -expect 0; design -load whole; "
            f"opt -fast; select {name}; write_rtlil -selected {name}.il"
        )
        try:
            self._run(script, clock)
        finally:
            source.unlink()
        document = json.loads((self._folder / f"{name}.json").read_text("utf-8"))
        module = document["modules"][name]
        trouble = wiring_trouble(module)
        if trouble:
            raise StepFailed(trouble)
        return [
            Port(port, value["direction"] == "input", len(value["bits"]))
            for port, value in module["ports"].items()
        ]

    def _named(self, name: str) -> str:
        """A name that no module of the response can have."""
        return f"{name}_{self._secret}"

    def undefined(self, ports: Sequence[Port], clock: Clock) -> str:
        """The first output of the reference that is never defined; empty for none."""
        for port in ports:
            if port.is_input:
                continue
            value = f"{port.bits}'b{'x' * port.bits}"
            gold = self._named("gold")
            script = f"read_rtlil {gold}.il; {self._sat('-falsify-no-timeout', base=True)}"
            try:
                self._run(f"{script} -prove-x {port.name} {value} {gold}", clock)
            except StepFailed as trouble:
                if "proof did succeed" in str(trouble) or "empty selection" in str(trouble):
                    return port.name
                raise
        return ""

    def differ(self, ports: Sequence[Port], pins: Pins, seconds: float) -> str:
        """The evidence that both do the same; "" where the solver does not decide.

        Raises:
            StepFailed: they differ.
        """
        gold, gate, top = self._named("gold"), self._named("gate"), self._named("start")
        miter = self._named("miter")
        (self._folder / "start.v").write_text(start(ports, pins, top, miter), "utf-8")
        both = (
            f"read_rtlil {gold}.il; read_rtlil {gate}.il; read_verilog -sv start.v; "
            f"miter -equiv -ignore_gold_x -flatten {gold} {gate} {miter}; hierarchy -top {top}; "
            "proc; flatten; opt -fast; "
        )
        prove = f"-prove trigger 0 {top}"
        try:
            self._run(f"{both}{self._sat('-verify', base=True)} {prove}", Clock(seconds))
        except Late:
            return ""
        except StepFailed as trouble:
            if str(trouble).endswith(_TIMED_OUT):
                return ""
            if str(trouble).endswith(_FAILED):
                text = f"an output differs within {self._steps // 2} cycles"
                raise StepFailed(text) from None
            raise
        try:
            self._run(f"{both}{self._sat('-verify', base=False)} {prove}", Clock(seconds))
        except StepFailed:
            return "bounded"
        return "proof"

    def _sat(self, mode: str, *, base: bool) -> str:
        return (
            f"sat {mode} -enable_undef -seq 1 -set-init-{self._initial} -set-def-inputs "
            f"-tempinduct{'-baseonly' if base else ''} -maxsteps {self._steps} "
            f"-timeout {self._solver_s}"
        )

    def _run(self, script: str, clock: Clock) -> None:
        ran = clock.run(["yosys", "-q", "-p", script], self._folder)
        if ran.code != 0:
            raise StepFailed(ran.words or f"yosys ended with {ran.code}")


def wiring_trouble(module: dict[str, Any]) -> str:
    """What of a flat netlist would bend the question; empty for nothing.

    An input that is driven from inside, or tied to another, is an input of the reference too, and a
    wire of two drivers is an equation that forbids inputs: both would make a proof of nothing.

    Args:
        module: as Yosys' write_json has it.
    """
    inputs: list[object] = []
    for port in module["ports"].values():
        if port["direction"] == "inout":
            return "it has a port that is both input and output"
        if port["direction"] == "input":
            inputs += port["bits"]
    driven = list(inputs)
    for cell in module["cells"].values():
        if not cell["type"].startswith("$") or cell["type"][1:].startswith(("any", "all", "ass")):
            return f"it holds a cell {cell['type'][:40]} without a body"
        for port, direction in cell["port_directions"].items():
            if direction != "input":
                driven += cell["connections"][port]
    if not all(isinstance(bit, int) for bit in driven) or len(set(driven)) != len(driven):
        return "it drives an input, or one wire twice"
    return ""


def start(ports: Sequence[Port], pins: Pins, top: str, miter: str) -> str:
    """A module around both that holds the resets for the first two cycles of the clocks."""
    free = [f"input [{port.bits - 1}:0] {port.name}" for port in ports if port.is_input]
    links = [".trigger(trigger)"]
    for port in ports:
        if port.is_input:
            held = pins.resets.get(port.name, "n[0]" if port.name in pins.clocks else None)
            value = port.name if held is None or not pins.resets else f"go ? {port.name} : {held}"
            links.append(f".in_{port.name}({value})")
    return (
        f"module {top}({', '.join([*free, 'output trigger'])});\n"
        "(* gclk *) wire tick;\nreg [2:0] n = 0;\nwire go = n == 4;\n"
        f"always @(posedge tick) if (!go) n <= n + 1;\n{miter} m({', '.join(links)});\nendmodule\n"
    )


# Icarus Verilog -----------------------------------------------------------------------------------


def bench(ports: Sequence[Port], pins: Pins, top: str, cycles: int, seed: int) -> str:
    """A test bench that drives the inputs at random and prints the outputs, three times a cycle."""
    inputs = [port for port in ports if port.is_input]
    outputs = [port for port in ports if not port.is_input]
    data = [port for port in inputs if port.name not in (*pins.resets, *pins.clocks)]
    drives = [
        f"in_{port.name} = {{{', '.join(['$random(seed)'] * -(-port.bits // 32))}}};"
        for port in data
    ]
    often = f"cycle < 2 || $random(seed) % {_RESET_ODDS} == 0"
    drives += [f"in_{name} = ({often}) ^ !{level};" for name, level in pins.resets.items()]
    shows = f'#1 $display("{" ".join(["%b"] * len(outputs))}"'
    shows += "".join(f", out_{port.name}" for port in outputs) + ");"
    up = " ".join(f"in_{name} = 1'b1;" for name in pins.clocks)
    down = " ".join(f"in_{name} = 1'b0;" for name in pins.clocks)
    nets = [f"reg [{port.bits - 1}:0] in_{port.name} = 0;" for port in inputs]
    nets += [f"wire [{port.bits - 1}:0] out_{port.name};" for port in outputs]
    links = ", ".join(
        f".{port.name}({'in' if port.is_input else 'out'}_{port.name})" for port in ports
    )
    nets_text, drive_text = "\n".join(nets), "\n".join(drives)
    return (
        f"`timescale 1ns/1ps\nmodule assay_bench;\n{nets_text}\ninteger seed, cycle;\n"
        f"{top} dut({links});\ninitial begin\nseed = {seed};\n"
        f"for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin\n{drive_text}\n{shows}\n"
        f"{up}\n{shows}\n{down}\n{shows}\nend\n$finish(0);\nend\nendmodule\n"
    )


def simulate(text: str, bench_text: str, name: str, clock: Clock, folder: Path) -> list[str]:
    """What the test bench prints of a module.

    Raises:
        StepFailed: it does not compile, or prints something else.
    """
    source, program = folder / f"{name}.v", folder / f"{name}.vvp"
    test = folder / f"{name}_bench.v"
    source.write_text(text, "utf-8", "replace")
    test.write_text(bench_text, "utf-8")
    argv = ["iverilog", "-g2012", "-s", "assay_bench", "-o", program.name, test.name, source.name]
    try:
        ran = clock.run(argv, folder)
        if ran.code != 0:
            raise StepFailed(ran.words or f"iverilog ended with {ran.code}")
        ran = clock.run(["vvp", "-n", program.name], folder)
    finally:
        for path in (source, test, program):
            path.unlink(missing_ok=True)
    if ran.code != 0:
        raise StepFailed(ran.words or f"the simulation ended with {ran.code}")
    return ran.out.splitlines()


def first_difference(gold: Sequence[str], gate: Sequence[str]) -> str:
    """Where two simulations differ in a bit that is defined in the first; empty for nowhere."""
    for number, line in enumerate(gold):
        other = gate[number] if number < len(gate) else ""
        if len(other) != len(line) or any(
            bit in "01" and bit != seen for bit, seen in zip(line, other, strict=True)
        ):
            return f"an output differs in cycle {number // 3 + 1} of the simulation"
    return "" if len(gold) == len(gate) else "the simulation prints more lines"


# The task -----------------------------------------------------------------------------------------


def work(task: dict[str, Any], write: Write, folder: Path) -> None:
    """Runs a task: the reference, then the response.

    Args:
        task: "gold", "top", "gate", "initial", "cycles", "vectors", "seconds" and "seed".
        write: takes each line that is to be written.
        folder: an empty one.
    """
    proves = shutil.which("yosys") is not None
    simulates = shutil.which("iverilog") is not None and shutil.which("vvp") is not None
    if not proves and not simulates:
        write({"gold": {"trouble": "neither yosys nor iverilog", "step": "tool"}})
        return
    judge = _Judge(task, folder, proves=proves, simulates=simulates)
    try:
        judge.read_gold(Clock(task["seconds"]))
    except StepFailed as trouble:
        write({"gold": {"trouble": str(trouble)[:SHOWN], "step": "module"}})
        return
    write({"gold": {"step": "done"}})
    word = refused(task["gate"])
    if word:
        write({"candidate": {"trouble": f"a module may not use {word!r}", "refused": True}})
        return
    try:
        write({"candidate": judge.compare()})
    except Late as late:
        write({"candidate": {"undecided": str(late)}})
    except StepFailed as trouble:
        write({"candidate": {"trouble": str(trouble)[:SHOWN]}})


class _Judge:
    """One pair of modules."""

    def __init__(
        self, task: dict[str, Any], folder: Path, *, proves: bool, simulates: bool
    ) -> None:
        self._task, self._folder, self._simulates = task, folder, simulates
        initial = "zero" if task["initial"] == "zero" else "undef"
        steps, solver_s = 2 * task["cycles"] + 1, max(1, int(task["seconds"] / 2))
        self._yosys = Yosys(folder, task["top"], initial, steps, solver_s) if proves else None
        self._ports: list[Port] = []
        self._pins = Pins((), {})
        self._printed: list[str] = []

    def read_gold(self, clock: Clock) -> None:
        task, yosys = self._task, self._yosys
        found = (
            yosys.read(task["gold"], "gold", clock)
            if yosys
            else ports_of(task["gold"], task["top"])
        )
        self._ports, self._pins = found, pins_of(found, task["gold"])
        if yosys is None:
            self._printed = self._simulate("gold", clock)
            if not any(set(line) & {"0", "1"} for line in self._printed):
                raise StepFailed("none of its outputs is ever defined")
            return
        vague = yosys.undefined(found, clock)
        if vague:
            text = f"its output {vague} is never defined: give it a reset or an initial value"
            raise StepFailed(f"{text}, or set initial=zero")

    def compare(self) -> dict[str, Any]:
        seconds, evidence = self._task["seconds"], ""
        if self._yosys is not None:
            ports = self._yosys.read(self._task["gate"], "gate", Clock(seconds))
            missing = set(self._ports) ^ set(ports)
            if missing:
                names = ", ".join(sorted({port.name for port in missing})[:5])
                return {"trouble": f"other ports than the reference: {names}"}
            evidence = self._yosys.differ(ports, self._pins, seconds)
            if evidence == "proof" or (evidence and not self._simulates):
                return {"trouble": "", "evidence": evidence}
        if not self._simulates:
            return {"undecided": "the solver does not decide, and iverilog is not there"}
        printed = self._printed or self._simulate("gold", Clock(seconds))
        try:
            found = first_difference(printed, self._simulate("gate", Clock(seconds)))
        except Late:
            return {"trouble": "its simulation does not end"}
        return {"trouble": found, "evidence": "both" if evidence else "simulated"}

    def _simulate(self, name: str, clock: Clock) -> list[str]:
        task = self._task
        test = bench(self._ports, self._pins, task["top"], task["vectors"], task["seed"])
        return simulate(task[name], test, name, clock, self._folder)


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    ours = Path(f"verilog{random.SystemRandom().randrange(10**9)}").absolute()
    ours.mkdir()
    work(json.load(sys.stdin), _write, ours)
