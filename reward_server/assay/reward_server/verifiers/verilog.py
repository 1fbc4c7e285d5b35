"""`verilog-equivalence`: the response's Verilog module does what the reference's does.

The check of CodeV-R1 (arXiv 2505.24183), which simulates a module beside a golden one; here it is
proved where it can be. The reference is the golden module's text, or `{"module": "...", "top":
"..."}` where several modules could be the one. The response's last `verilog` block holds a module
of that name with those ports, and what it instantiates.

By Yosys (Debian's yosys): a SAT solver looks for inputs on which an output differs, within `cycles`
clock cycles from the start, and proves by induction that there are none ever. By Icarus Verilog
(Debian's iverilog): where the solver proves nothing, or Yosys is missing, both are simulated with
random inputs for `vectors` cycles. The explanation says which: "proven equivalent", "no difference
in 12 cycles, none in 1000 simulated ones: no proof", "simulated, 1000 vectors: no proof"; the
component `proven`, of weight 0, is 1 for the first. `evidence=proof` takes nothing else. With
neither tool an item is the fault UNSUPPORTED_INPUT, which says what to install.

Undefined outputs of the reference may be anything; where the reference is defined, so must the
response be. Registers start undefined unless an `initial` says otherwise (`initial=zero`: all start
at zero). Inputs named as resets (rst, reset, clear; active low when they end in n, _n or _b) are
held for the first two cycles, and are free thereafter; clocks are what the reference has edges of.

A response that nothing decides in timeout_s a step has the verdict `undecided`, which earns
nothing: an honest multiplier may meet it, and a fault would let a policy drop its sample by an
enormous circuit. A reference that cannot be read, or whose output is never defined, is the fault
UNUSABLE_REFERENCE.

Refused before anything reads it, as `incorrect` with the suspicion `escaping-module`: system calls
(`$finish`, `$display`, `$readmemh`; pure ones such as `$clog2` and `$signed` are taken), `include`
and macros that are put together, attributes `(* *)`, escaped names, assumptions and assertions,
force, bind and wait. Also incorrect: what Yosys cannot synthesise, combinational loops, inputs that
are driven from inside, wires of two drivers (three-state logic too), modules that are not there,
other ports.

What a policy could game. Where there is no proof, a difference beyond the cycles and vectors: a
trigger on one input in 2**17 passes a thousand simulated ones. evidence=proof closes it.

Limits. Synthesisable Verilog 2005 and what SystemVerilog Yosys reads. Delays and what is printed do
not count; bidirectional ports are not taken. Undefined values spread pessimistically, so a module
that resets itself by cleverer ways than the reference is incorrect.

Measured: of 16 right, 22 wrong and 53 forged modules none is judged wrongly with Yosys and Icarus;
one wrong one passes by simulation alone (`python -m bench proofs`;
docs/understand/results/verifiers.md). Against CodeV-R1's data: not yet, because it is not at hand.
"""

from __future__ import annotations

import re
import secrets

from assay.clients.execution import Execution
from assay.reward_server.domain import (
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Fault,
    Judgement,
    Outcome,
    ParameterSpec,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers import code_text
from assay.reward_server.verifiers.runners import (
    OWN_LIMITS,
    RunnerVerifier,
    Task,
    lines_of,
    one_line,
    shown,
    unusable,
    without_gold,
)
from assay.reward_server.verifiers.verilog_runner import modules_of, without_comments

MAX_CHARS = 200_000
ESCAPING = "escaping-module"
_INSTALL = (
    "neither yosys nor iverilog is in the sandbox: install Debian's package yosys for proofs, and "
    "iverilog for what the solver does not decide"
)
_BARE = re.compile(r"\s*(?:`|//|/\*|module\b)")
_NAME = re.compile(r"[A-Za-z_]\w{0,80}")

_SPEC = VerifierSpec(
    name="verilog-equivalence",
    version="1",
    description="The Verilog module does what the reference's does, by proof or by simulation.",
    tasks=("verilog", "verilog-equivalence"),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "undecided", "unparsed"),
    parameters=(
        ParameterSpec(
            "timeout_s",
            "float",
            10.0,
            "Seconds of each step: to read a module, to search, to prove, to simulate.",
            minimum=1.0,
            maximum=45.0,
        ),
        ParameterSpec(
            "cycles",
            "int",
            12,
            "Clock cycles in which the solver looks for a difference.",
            minimum=1,
            maximum=200,
        ),
        ParameterSpec(
            "vectors",
            "int",
            1_000,
            "Cycles of the simulation, each with random inputs.",
            minimum=10,
            maximum=100_000,
        ),
        ParameterSpec(
            "initial",
            "string",
            "undefined",
            "Registers without an initial value: undefined, or zero (needs Yosys).",
            allowed_values=("undefined", "zero"),
        ),
        ParameterSpec(
            "evidence",
            "string",
            "any",
            "What makes a module correct: any evidence, or a proof for all time.",
            allowed_values=("any", "proof"),
        ),
        ParameterSpec(
            "extraction",
            "string",
            "last",
            "Which fenced block is the module; all joins them, whole takes the response itself.",
            allowed_values=code_text.CHOICES,
        ),
    ),
    # The vectors are drawn anew for each judgement.
    deterministic=False,
    cacheable=False,
    isolation="remote",
)


class VerilogVerifier(RunnerVerifier):
    """Has modules compared; see `RunnerVerifier`."""

    runner = "verilog_runner.py"
    modules = ("commands",)
    stages = 6
    memory_bytes = 1024 << 20

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One item for each verdict but `undecided`, which is a matter of time."""
        return (
            VerifierExample(_example("~(~a | ~b)"), "correct"),
            VerifierExample(_example("a | b"), "incorrect"),
            VerifierExample(_example(None), "unparsed"),
        )

    def task_of(self, item: VerifierItem) -> Task | Judgement:
        """See `RunnerVerifier`."""
        gold, top = reference_of(item)
        module = find_module(item.response(), str(item.parameters["extraction"]))
        if module is None:
            return _judgement("unparsed", "there is no module in the response", None)
        if len(module) > MAX_CHARS:
            return _judgement("incorrect", "the module is too long", module)
        parameters = item.parameters
        return {
            "gold": gold,
            "top": top,
            "gate": module,
            "initial": str(parameters["initial"]),
            "cycles": int(parameters["cycles"]),  # type: ignore[arg-type]
            "vectors": int(parameters["vectors"]),  # type: ignore[arg-type]
            "seconds": float(parameters["timeout_s"]),  # type: ignore[arg-type]
            "seed": secrets.randbits(31),
        }

    def outcome_of(self, execution: Execution, task: Task, item: VerifierItem) -> Outcome:
        """See `RunnerVerifier`."""
        return outcome_of(execution, task, needs_proof=item.parameters["evidence"] == "proof")


def reference_of(item: VerifierItem) -> tuple[str, str]:
    """The golden module's text and its name. Pure.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    text: object = item.references[0] if len(item.references) == 1 else None
    top: object = None
    if not isinstance(text, str) or text.lstrip().startswith("{"):
        fields = item.document()
        if not isinstance(fields, dict):
            raise unusable(_SPEC.name, 'must be a module, or {"module": "...", "top": "..."}')
        text, top = fields.get("module"), fields.get("top")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARS:
        raise unusable(_SPEC.name, f'"module" must be a text of at most {MAX_CHARS} characters')
    if top is None:
        code = without_comments(text)
        names = modules_of(text)
        roots = [name for name in names if len(re.findall(rf"\b{name}\b", code)) == 1]
        if len(roots) != 1:
            raise unusable(_SPEC.name, f'say which module is meant in "top", of {names[:10]}')
        top = roots[0]
    if not isinstance(top, str) or not _NAME.fullmatch(top) or top not in modules_of(text):
        raise unusable(_SPEC.name, '"top" must be the name of one of its modules')
    return text, top


def find_module(response: str, extraction: str) -> str | None:
    """The Verilog of a response; None where there is none."""
    module = code_text.extract_code(response, "verilog", extraction)
    if module is None:
        text = response.rpartition("</think>")[2]
        module = text if _BARE.match(text) and "endmodule" in text else None
    return module if module and module.strip() else None


def outcome_of(execution: Execution, task: Task, *, needs_proof: bool) -> Outcome:
    """The outcome of a run of `verilog_runner`. Pure.

    Args:
        execution: of the run.
        task: what was run.
        needs_proof: other evidence decides nothing.
    """
    gold, candidate = lines_of(execution)
    if gold is None:
        return without_gold(execution, _SPEC.name, "the reference's module")
    if gold.get("step") == "tool":
        return Fault(UNSUPPORTED_INPUT, _INSTALL)
    if "trouble" in gold:
        text = one_line(str(gold["trouble"]))
        return Fault(UNUSABLE_REFERENCE, f"the reference's module is not taken: {text}")
    if candidate is None:
        key = "undecided" if execution.end in OWN_LIMITS else "trouble"
        candidate = {key: f"the module ends its check: {execution.end}"}
    return _judged(candidate, task, needs_proof=needs_proof)


def _judged(candidate: Task, task: Task, *, needs_proof: bool) -> Judgement:
    module = str(task["gate"])
    if candidate.get("undecided"):
        return _judgement("undecided", str(candidate["undecided"]), module)
    if candidate.get("trouble"):
        suspicions = (ESCAPING,) if candidate.get("refused") else ()
        return _judgement("incorrect", str(candidate["trouble"]), module, suspicions)
    evidence = candidate.get("evidence")
    if evidence == "proof":
        return _judgement("correct", "proven equivalent", module, proven=True)
    bounded = f"no difference in {task['cycles']} cycles"
    words = {
        "bounded": f"{bounded}: no proof",
        "both": f"{bounded}, none in {task['vectors']} simulated ones: no proof",
        "simulated": f"simulated, {task['vectors']} vectors: no proof",
    }[str(evidence)]
    return _judgement("undecided" if needs_proof else "correct", words, module)


def _judgement(
    verdict: str,
    why: str,
    module: str | None,
    suspicions: tuple[str, ...] = (),
    *,
    proven: bool = False,
) -> Judgement:
    return Judgement.composed(
        verdict,
        (
            Component("equivalent", float(verdict == "correct")),
            Component("proven", float(proven), 0.0),
        ),
        extracted_answer=shown(module),
        explanation=one_line(why),
        suspicions=suspicions,
    )


def _example(formula: str | None) -> VerifierItem:
    head = "module both(input a, b, output y);\n  assign y = "
    response = "I cannot." if formula is None else f"```verilog\n{head}{formula};\nendmodule\n```"
    return VerifierItem(
        Candidate(response),
        (f"{head}a & b;\nendmodule",),
        parameters=_SPEC.complete({}),
    )
