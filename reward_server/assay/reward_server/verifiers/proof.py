"""`proof`: a proof checker accepts the response as a proof of the reference's statement.

The reference is `{"system": "coq", "statement": "forall n : nat, n + 0 = n"}`, with `"header"`
(imports and scopes), `"definitions"` (what the statement speaks of), `"name"` (what a whole proof
calls its theorem; `goal`) and `"axioms"` (those it may stand on) where needed. Systems: `coq` (Coq
8.16), `lean` (Lean 4), `smt` (SMT-LIB 2, by Z3). The tool is needed in the sandbox, in Debian's
packages coq and z3; without it an item is the fault UNSUPPORTED_INPUT, which says what to install.

The response's last block is a script of tactics, or declarations among which the theorem is. The
verdict is the kernel's: a file of ours, which imports the response's compiled file but none of its
notations, defines a constant of the statement's type by the response's theorem, and asks on which
axioms it stands. The statement was compiled before the response was read. So `Admitted`, `sorry`,
axioms, flags of the kernel, another theorem of that name, other notations and whatever the response
prints are all the same: incorrect. Lean's axioms `propext`, `Classical.choice` and `Quot.sound` are
allowed where the reference names none; in Coq, none. Refused by their words, before they run:
commands that write or load files or code (Coq), and what changes how Lean reads or runs at compile
time (macros, notations, elaborators, `#eval`, `unsafe`, `native_decide`).

In `smt` the definitions are declarations and premises, the statement is a term, and a proof is
`(define-fun ...)` of new names and `(assert LEMMA)`: each lemma must follow from what is before it,
and the statement from them all, in `effort` of Z3's steps (its rlimit: the same on every machine).
No other command exists. A statement that Z3 proves alone in that effort needs no proof, and is the
fault UNUSABLE_REFERENCE (trivial=accept takes it); premises that contradict themselves are too.

A proof that takes more than timeout_s is incorrect: whatever happens once the statement has passed
is the response's doing.

Suspicions: `assumed-proof`, a proof that stands on what it should show or on other axioms, and
`escaping-proof`, one with a command that is refused.

What a policy could game. A statement that says less than it means: the checker proves the formal
text, not the intent. In `smt`, an effort so large that lemmas are not needed.

Limits. The checkers are trusted: a defect of Coq's kernel or of Z3 is one of ours. Coq's virtual
machine and native compiler are off, so proofs by heavy computation take longer. Refused words count
in comments too. In `smt`, symbols in bars, and attributes but `:pattern`, are not read. Lean was
never run where this was measured: its way is Coq's, its refusals and its absence are tested.

Measured: 24 right proofs accepted, and 15 wrong and 87 forged ones refused, by Coq 8.16.1 and Z3
4.8.12 (`python -m bench proofs`; docs/understand/results/verifiers.md).
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
    JsonValue,
    Judgement,
    Outcome,
    ParameterSpec,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers import code_text
from assay.reward_server.verifiers.runners import (
    RunnerVerifier,
    Task,
    lines_of,
    one_line,
    shown,
    unusable,
    without_gold,
)

SYSTEMS = ("coq", "lean", "smt")
MAX_REFERENCE_CHARS = 200_000
MAX_PROOF_CHARS = 200_000
ASSUMED, ESCAPING = "assumed-proof", "escaping-proof"
_INSTALL = {
    "coq": "coq is not in the sandbox: install Debian's package coq",
    "lean": "lean is not in the sandbox: install Lean 4 below /usr/local, its lean on the PATH",
    "smt": "z3 is not in the sandbox: install Debian's package z3",
}
_AXIOMS: dict[str, tuple[str, ...]] = {
    "coq": (),
    "lean": ("propext", "Classical.choice", "Quot.sound"),
    "smt": (),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_']{0,80}")

_SPEC = VerifierSpec(
    name="proof",
    version="1",
    description="A proof checker (Coq, Lean 4, or Z3 lemma by lemma) accepts the response's proof.",
    tasks=("proof", "theorem-proving"),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "timeout_s",
            "float",
            30.0,
            "Seconds that the checker may take for the proof, and for the statement.",
            minimum=1.0,
            maximum=120.0,
        ),
        ParameterSpec(
            "effort",
            "int",
            1_000_000,
            "smt: Z3's steps (rlimit) for each lemma.",
            minimum=1_000,
            maximum=1_000_000_000,
        ),
        ParameterSpec(
            "trivial",
            "string",
            "refuse",
            "smt: a statement that Z3 proves without a lemma: a fault, or judged.",
            allowed_values=("refuse", "accept"),
        ),
        ParameterSpec(
            "extraction",
            "string",
            "last",
            "Which fenced block is the proof; all joins them, whole takes the response itself.",
            allowed_values=code_text.CHOICES,
        ),
    ),
    # A busy machine may take a proof past its time.
    deterministic=False,
    cacheable=False,
    isolation="remote",
)


class ProofVerifier(RunnerVerifier):
    """Has proofs checked; see `RunnerVerifier`."""

    runner = "proof_runner.py"
    modules = ("commands",)
    memory_bytes = 1536 << 20
    disk_bytes = 256 << 20

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One item for each verdict."""
        lemmas = "```smt\n(assert (> (+ x y) 0))\n(assert (> (* (- y x) (+ x y)) 0))\n```"
        return (
            VerifierExample(_example(lemmas), "correct"),
            VerifierExample(_example('```smt\n(echo "unsat")\n```'), "incorrect"),
            VerifierExample(_example("It is obvious."), "unparsed"),
        )

    def task_of(self, item: VerifierItem) -> Task | Judgement:
        """See `RunnerVerifier`."""
        reference = reference_of(item)
        system = str(reference["system"])
        text = code_text.extract_code(item.response(), system, str(item.parameters["extraction"]))
        if text is None or not text.strip():
            return _judgement("unparsed", "there is no proof in the response", None)
        if len(text) > MAX_PROOF_CHARS:
            return _judgement("incorrect", "the proof is too long", text)
        return {
            **reference,
            "proof": text,
            "nonce": secrets.token_hex(8),
            "seconds": float(item.parameters["timeout_s"]),  # type: ignore[arg-type]
            "effort": int(item.parameters["effort"]),  # type: ignore[arg-type]
            "refuse_trivial": item.parameters["trivial"] == "refuse",
        }

    def outcome_of(self, execution: Execution, task: Task, item: VerifierItem) -> Outcome:
        """See `RunnerVerifier`."""
        return outcome_of(execution, str(task["system"]), str(task["proof"]))


def reference_of(item: VerifierItem) -> Task:
    """The reference's part of the task. Pure.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    fields = item.document()
    if not isinstance(fields, dict):
        raise unusable("proof", 'must be an object {"system": "coq", "statement": "..."}')
    system = fields.get("system")
    if system not in SYSTEMS:
        raise unusable("proof", f'"system" must be one of {", ".join(SYSTEMS)}')
    texts = {key: fields.get(key, "") for key in ("statement", "header", "definitions")}
    if any(not isinstance(text, str) for text in texts.values()):
        raise unusable("proof", '"statement", "header" and "definitions" must be texts')
    statement = str(texts["statement"]).strip()
    if system == "coq":
        statement = statement.removesuffix(".")
    if not statement or sum(len(str(text)) for text in texts.values()) > MAX_REFERENCE_CHARS:
        raise unusable("proof", f'"statement" is empty, or all is over {MAX_REFERENCE_CHARS}')
    name = fields.get("name", "goal")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise unusable("proof", '"name" must be a name of letters, digits, _ and \'')
    axioms = fields.get("axioms", list(_AXIOMS[str(system)]))
    if not isinstance(axioms, list) or not all(isinstance(one, str) for one in axioms):
        raise unusable("proof", '"axioms" must be a list of names')
    return {**texts, "system": system, "statement": statement, "name": name, "axioms": axioms}


def outcome_of(execution: Execution, system: str, proof: str) -> Outcome:
    """The outcome of a run of `proof_runner`. Pure.

    Args:
        execution: of the run.
        system: the reference's.
        proof: the response's.
    """
    gold, candidate = lines_of(execution)
    if gold is None:
        return without_gold(execution, "proof", "the reference's statement")
    if gold.get("step") == "tool":
        return Fault(UNSUPPORTED_INPUT, _INSTALL[system])
    if "trouble" in gold:
        text = one_line(str(gold["trouble"]))
        return Fault(UNUSABLE_REFERENCE, f"the reference's statement is not taken: {text}")
    if candidate is None:
        # The statement has just gone through the same checker: what ends it now is the proof.
        return _judgement("incorrect", f"the proof ends its check: {execution.end}", proof)
    if candidate.get("trouble"):
        flags = ((ASSUMED, "assumes"), (ESCAPING, "refused"))
        suspicions = tuple(name for name, key in flags if candidate.get(key))
        return _judgement("incorrect", str(candidate["trouble"]), proof, suspicions)
    return _judgement("correct", "the checker accepts the proof of the statement", proof)


def _judgement(
    verdict: str, why: str, proof: str | None, suspicions: tuple[str, ...] = ()
) -> Judgement:
    return Judgement.composed(
        verdict,
        (Component("proved", float(verdict == "correct")),),
        extracted_answer=shown(proof),
        explanation=one_line(why),
        suspicions=suspicions,
    )


def _example(response: str) -> VerifierItem:
    premises = "(declare-const x Int)\n(declare-const y Int)\n(assert (> x 0))\n(assert (> y x))"
    data: JsonValue = {"system": "smt", "definitions": premises, "statement": "(> (* y y) (* x x))"}
    parameters = _SPEC.complete({"effort": 20_000, "trivial": "accept"})
    return VerifierItem(Candidate(response), data=data, parameters=parameters)
