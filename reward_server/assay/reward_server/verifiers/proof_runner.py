"""What runs in the sandbox for `proof`: a proof checker on a statement, a proof, and a check.

The server never imports this module; it sends its text as a program, with the task as JSON on
stdin. It writes one JSON object per line: `{"gold": ...}` when the checker has taken the statement,
then `{"candidate": ...}`.

Coq and Lean: three files in three processes. The first is ours and holds the statement as a
constant; the second holds the response; the third is ours again, asks the kernel whether the
response's constant has the first file's type, and asks on which axioms it stands. Only the third's
output is read. The files' names hold a nonce that the response cannot know.

SMT-LIB: the response is definitions and lemmas. They are read here and written anew, so that no
command of the response reaches Z3; each lemma must follow from the premises and the lemmas before
it, and the statement from them all, each within a bound of Z3's own steps.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.reward_server.verifiers.commands import SHOWN, Clock, Ran, StepFailed

Write = Callable[[dict[str, Any]], object]

MAX_TERMS = 200
MAX_TOKENS = 200_000
MAX_DEPTH = 200


def refused(text: str, patterns: str) -> str:
    """The first command of a response that could reach beyond its proof; empty for none.

    Comments and texts count: what is no command for us might be one for the checker.
    """
    found = re.search(patterns, text)
    return " ".join(found.group().split()) if found else ""


# Coq ----------------------------------------------------------------------------------------------

# What writes or reads files, loads code, or leaves Coq. What assumes is left to Print Assumptions.
COQ_REFUSED = (
    r"\b(?:Redirect|Load|LoadPath|Extraction|Extract|ML|Cd|Drop|Universes|Checking|bypass_check"
    r"|Profile|Profiling|Dump)\b"
)
_COQ_STATED = (
    r"\b(?:Theorem|Lemma|Corollary|Proposition|Remark|Fact|Property|Definition|Example|Fixpoint"
    r"|Instance|Let|Axiom|Parameter|Variable|Hypothesis|Conjecture)\s+{name}(?![\w'])"
)


class Coq:
    """Coq, by `coqc`; its virtual machine and its native compiler are off: the kernel converts."""

    tool = "coqc"
    refused = COQ_REFUSED

    def __init__(self, task: dict[str, Any], folder: Path) -> None:
        self._task, self._folder, nonce = task, folder, task["nonce"]
        self.given, self.proof, self.check = (f"{kind}_{nonce}" for kind in ("G", "P", "C"))
        (folder / "findlib.conf").write_text('path="/usr/lib/ocaml:/usr/local/lib/ocaml"\n')

    def state(self, clock: Clock) -> None:
        """Makes the statement a constant of a compiled file."""
        task = self._task
        self._compile(
            clock,
            self.given,
            f"{task['header']}\n{task['definitions']}\n"
            f"Definition statement : Prop :=\n  ({task['statement']}\n  ).\n",
        )

    def prove(self, clock: Clock) -> None:
        """Compiles the response."""
        self._compile(
            clock,
            self.proof,
            f"Require Import {self.given}.\n{self._task['header']}\n{self._source()}\n",
        )

    def _source(self) -> str:
        text, name = self._task["proof"], self._task["name"]
        if re.search(_COQ_STATED.format(name=re.escape(name)), text):
            return str(text)
        script = text.strip()
        start = "" if re.match(r"Proof\b", script) else "Proof.\n"
        end = "" if re.search(r"\b(?:Qed|Defined|Admitted|Abort|Save)\s*\.$", script) else "\nQed."
        return f"Theorem {name} :\n  ({self._task['statement']}\n  ).\n{start}{script}{end}"

    def stands_on(self, clock: Clock) -> list[str]:
        """The axioms of the proof, after the kernel has taken it for the statement."""
        text = (
            f"Require {self.given}.\nRequire {self.proof}.\nSet Printing Width 1000.\n"
            f"Definition {self.check} : {self.given}.statement := "
            f"{self.proof}.{self._task['name']}.\n"
            f"Check {self.check}.\nPrint Assumptions {self.check}.\n"
        )
        said = self._compile(clock, self.check, text).out
        head = f"{self.check}\n     : {self.given}.statement\n"
        if not said.startswith(head):
            raise StepFailed(f"the check says {said[:SHOWN]!r}")
        lines = said.removeprefix(head).splitlines()
        if lines == ["Closed under the global context"]:
            return []
        if not lines or lines[0] != "Axioms:":
            raise StepFailed(f"the check says {lines[:3]}")
        names = [re.split(r"\s", line)[0] for line in lines[1:] if not line[:1].isspace()]
        return [name for name in names if not name.startswith(f"{self.given}.")]

    def shown(self, axiom: str) -> str:
        """An axiom's name without our file's."""
        return axiom.removeprefix(f"{self.proof}.")

    def _compile(self, clock: Clock, name: str, text: str) -> Ran:
        (self._folder / f"{name}.v").write_text(text, "utf-8", "replace")
        # fmt: off
        argv = ["coqc", "-q", "-w", "none", "-bytecode-compiler", "no", "-native-compiler", "no",
                "-R", ".", "", f"{name}.v"]
        # fmt: on
        ran = clock.run(argv, self._folder)
        if ran.code != 0 or not (self._folder / f"{name}.vo").is_file():
            raise StepFailed(ran.words or f"coqc ended with {ran.code}")
        return ran


# Lean ---------------------------------------------------------------------------------------------

# Whatever changes how text is read, runs at compile time, or puts other code behind a name.
LEAN_REFUSED = (
    r"\b(?:import|macro|macro_rules|syntax|declare_syntax_cat|elab|elab_rules|by_elab|notation3?"
    r"|infix[lr]?|prefix|postfix|initialize|builtin_initialize|init|run_cmd|run_tac|run_elab"
    r"|run_meta|unsafe|implemented_by|extern|csimp|export|native_decide|ofReduceBool|reduceBool"
    r"|axiom|sorry|sorryAx|admit|simproc|dbg_trace|include_str|Lean|IO|Elab|Meta|Macro|debug"
    r"|trustCompiler|deriving|command_elab|term_elab|tactic|unif_hint)\b|#[A-Za-z_]|[«»]"
)
_LEAN_STATED = r"\b(?:theorem|lemma|def|abbrev|instance|opaque)\s+{name}(?![\w'])"
_LEAN_FREE = re.compile(r"^'(\S+)' does not depend on any axioms$", re.MULTILINE)
_LEAN_AXIOMS = re.compile(r"^'(\S+)' depends on axioms: \[([^\]]*)\]$", re.MULTILINE)


class Lean:
    """Lean 4, by `lean`."""

    tool = "lean"
    refused = LEAN_REFUSED

    def __init__(self, task: dict[str, Any], folder: Path) -> None:
        self._task, self._folder, nonce = task, folder, task["nonce"]
        self.given, self.proof, self.check = (f"{kind}{nonce}" for kind in ("G", "P", "C"))

    def state(self, clock: Clock) -> None:
        """See `Coq.state`."""
        task = self._task
        self._compile(
            clock,
            self.given,
            f"{task['header']}\n{task['definitions']}\n"
            f"def {self.given}.statement : Prop :=\n  ({task['statement']}\n  )\n",
        )

    def prove(self, clock: Clock) -> None:
        """See `Coq.prove`."""
        text, name = self._task["proof"].strip(), self._task["name"]
        if not re.search(_LEAN_STATED.format(name=re.escape(name)), text):
            body = text.removeprefix(":=").strip()
            body = body if re.match(r"(?:by|fun|λ)\b|\(", body) else f"by\n  {body}"
            text = f"theorem {name} :\n  ({self._task['statement']}\n  ) := {body}"
        self._compile(clock, self.proof, f"import {self.given}\n{self._task['header']}\n{text}\n")

    def stands_on(self, clock: Clock) -> list[str]:
        """See `Coq.stands_on`."""
        text = (
            f"import {self.given}\nimport {self.proof}\n"
            f"theorem {self.check} : {self.given}.statement := {self._task['name']}\n"
            f"#print axioms {self.check}\n"
        )
        said = self._compile(clock, self.check, text).out
        free, standing = _LEAN_FREE.findall(said), _LEAN_AXIOMS.findall(said)
        if free == [self.check] and not standing:
            return []
        if free or len(standing) != 1 or standing[0][0] != self.check:
            raise StepFailed(f"the check says {said[:SHOWN]!r}")
        return [name.strip() for name in standing[0][1].split(",")]

    def shown(self, axiom: str) -> str:
        """See `Coq.shown`."""
        return axiom

    def _compile(self, clock: Clock, name: str, text: str) -> Ran:
        (self._folder / f"{name}.lean").write_text(text, "utf-8", "replace")
        ran = clock.run(["lean", "-o", f"{name}.olean", f"{name}.lean"], self._folder)
        if ran.code != 0 or not (self._folder / f"{name}.olean").is_file():
            raise StepFailed(ran.out.strip()[-SHOWN:] or ran.words or f"lean ended with {ran.code}")
        return ran


# SMT-LIB ------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|;[^\n]*\n?)|(?P<paren>[()])"
    r"|(?P<atom>[A-Za-z0-9~!@$%^&*_+=<>.?/-]+|#[xb][0-9A-Fa-f]+|:pattern(?![A-Za-z0-9~!@$%^&*_+=<>.?/-])"
    r'|"[ !#-\[\]-~]*"(?!"))'
)
_NEW_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
Term = str | list["Term"]


def read_terms(text: str) -> list[Term]:
    """The S-expressions of a text.

    Raises:
        StepFailed: it holds other characters than plain symbols, numbers and texts, is unbalanced,
            or is beyond a bound.
    """
    stack: list[list[Term]] = [[]]
    position = count = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise StepFailed(f"it is no plain SMT-LIB at {text[position : position + 20]!r}")
        position = found.end()
        if found["space"]:
            continue
        count += 1
        if count > MAX_TOKENS or len(stack) > MAX_DEPTH:
            raise StepFailed("it is too large")
        if found["atom"]:
            stack[-1].append(found["atom"])
        elif found["paren"] == "(":
            stack.append([])
        elif len(stack) == 1:
            raise StepFailed("it closes a parenthesis too many")
        else:
            done = stack.pop()
            stack[-1].append(done)
    if len(stack) > 1:
        raise StepFailed("it leaves a parenthesis open")
    return stack[0]


def as_text(term: Term) -> str:
    """A term as SMT-LIB."""
    return term if isinstance(term, str) else f"({' '.join(map(as_text, term))})"


def steps_of(text: str, taken: str) -> Iterator[tuple[str, str]]:
    """The steps of a response: ("define", a definition) or ("lemma", a term).

    Args:
        text: `(define-fun NAME ((x SORT) ...) SORT TERM)`, `(define-const NAME SORT TERM)` and
            `(assert TERM)`, in order.
        taken: the reference's text, whose names no definition may have.

    Raises:
        StepFailed: it is something else.
    """
    known = set(re.findall(r"[^\s()|\"]+", taken))
    terms = read_terms(text)
    if not terms or len(terms) > MAX_TERMS:
        raise StepFailed(f"a proof has 1 to {MAX_TERMS} definitions and lemmas")
    for term in terms:
        head = term[0] if isinstance(term, list) and term else ""
        if head == "assert" and len(term) == 2:
            yield "lemma", as_text(term[1])
        elif (head, len(term)) in (("define-fun", 5), ("define-const", 4)):
            name = term[1]
            if not isinstance(name, str) or not _NEW_NAME.fullmatch(name) or name in known:
                raise StepFailed(f"{as_text(name)[:40]} is no new name")
            known.add(name)
            yield "define", as_text(term)
        else:
            raise StepFailed(f"{as_text(term)[:60]} is neither a definition nor a lemma")


class Smt:
    """Z3 on SMT-LIB 2: every lemma is a step that Z3 must find in `effort` of its own steps."""

    tool = "z3"
    refused = ""

    def __init__(self, task: dict[str, Any], folder: Path) -> None:
        self._task, self._folder, nonce = task, folder, task["nonce"]
        self._goal = f"goal_{nonce}"
        self._premises = (
            f"{task['header']}\n{task['definitions']}\n"
            f"(define-fun {self._goal} () Bool\n{task['statement']}\n)\n"
        )

    def state(self, clock: Clock) -> None:
        """Asks whether the premises hold together, and whether the statement needs a proof."""
        said = self._ask(clock, "")
        if said == "unsat":
            raise StepFailed("the premises contradict each other: everything follows")
        if self._task["refuse_trivial"] and self._follows(clock, "", self._goal):
            text = "Z3 proves the statement without a lemma in this effort: lower it, or accept"
            raise StepFailed(f"{text} (trivial=accept)")

    def prove(self, clock: Clock) -> None:
        """Checks each lemma, then the statement."""
        taken = f"{self._premises} {self._task['statement']}"
        so_far, number = "", 0
        for kind, text in steps_of(self._task["proof"], taken):
            if kind == "define":
                so_far += f"{text}\n"
                self._ask(clock, so_far, only_reads=True)
                continue
            number += 1
            if not self._follows(clock, so_far, text):
                raise StepFailed(f"lemma {number} does not follow in this effort: {text[:200]}")
            so_far += f"(assert {text})\n"
        if not self._follows(clock, so_far, self._goal):
            raise StepFailed(f"the statement does not follow in this effort from {number} lemmas")

    def stands_on(self, clock: Clock) -> list[str]:
        """On nothing beside the premises."""
        del clock
        return []

    def shown(self, axiom: str) -> str:
        """See `Coq.shown`."""
        return axiom

    def _follows(self, clock: Clock, so_far: str, term: str) -> bool:
        return self._ask(clock, f"{so_far}(assert (not\n{term}\n))\n") == "unsat"

    def _ask(self, clock: Clock, text: str, *, only_reads: bool = False) -> str:
        end = "" if only_reads else "(check-sat)\n"
        (self._folder / "ask.smt2").write_text(f"{self._premises}{text}{end}", "utf-8")
        effort = "" if only_reads else f"rlimit={self._task['effort']}"
        ran = clock.run(["z3", "-smt2", *filter(None, (effort,)), "ask.smt2"], self._folder)
        said = ran.out.strip()
        if ran.code != 0 or said not in (("",) if only_reads else ("sat", "unsat", "unknown")):
            raise StepFailed(f"Z3 cannot read it: {said[:SHOWN]}")
        return said


SYSTEMS: dict[str, type[Coq | Lean | Smt]] = {"coq": Coq, "lean": Lean, "smt": Smt}


def work(task: dict[str, Any], write: Write, folder: Path) -> None:
    """Runs a task: the statement, then the response's proof.

    Args:
        task: "system", "header", "definitions", "statement", "name", "axioms", "proof", "nonce",
            "seconds", "effort" and "refuse_trivial".
        write: takes each line that is to be written.
        folder: an empty one.
    """
    kind = SYSTEMS[task["system"]]
    if shutil.which(kind.tool) is None:
        write({"gold": {"trouble": f"no {kind.tool}", "step": "tool"}})
        return
    system = kind(task, folder)
    try:
        system.state(Clock(task["seconds"]))
    except StepFailed as trouble:
        write({"gold": {"trouble": str(trouble)[:SHOWN], "step": "statement"}})
        return
    write({"gold": {"step": "done"}})
    try:
        write({"candidate": _judge(system, task, folder)})
    except StepFailed as trouble:
        write({"candidate": {"trouble": str(trouble)[:SHOWN]}})


def _judge(system: Coq | Lean | Smt, task: dict[str, Any], folder: Path) -> dict[str, Any]:
    word = refused(task["proof"], system.refused) if system.refused else ""
    if word:
        return {"trouble": f"a proof may not use {word[:40]!r}", "refused": True}
    clock, ours = Clock(task["seconds"]), _hashes(folder, task["nonce"])
    system.prove(clock)
    if any(_hashes(folder, task["nonce"]).get(name) != value for name, value in ours.items()):
        return {"trouble": "the proof has changed files of the check", "refused": True}
    foreign = [name for name in system.stands_on(clock) if name not in task["axioms"]]
    if foreign:
        names = ", ".join(map(system.shown, foreign[:10]))
        return {"trouble": f"the proof stands on {names}", "assumes": True}
    return {"trouble": ""}


def _hashes(folder: Path, nonce: str) -> dict[str, str]:
    """Of the files that the check reads again."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and nonce in path.name
    }


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    ours = Path("proof").absolute()
    ours.mkdir()
    work(json.load(sys.stdin), _write, ours)
