"""Plug-ins that misbehave on demand, installed as a user installs one: found by entry point."""

from __future__ import annotations

from pathlib import Path

CHAOS = '''
import os, sys, time
from assay.reward_server.domain import *

class Chaos(Verifier):
    """Does what the response says."""

    spec = VerifierSpec("chaos", "1", "Misbehaves on demand.", ("chaos",), 0.0, 1.0, ("fine",),
                        needs_reference=False)
    examples = (VerifierExample(VerifierItem(Candidate("fine")), "fine"),)

    def judge(self, item):
        word, _, rest = item.response().partition(" ")
        if word == "sleep":
            time.sleep(float(rest.split()[0]))
        elif word == "die":
            os._exit(3)
        elif word == "raise":
            raise RuntimeError("secret text of the candidate")
        elif word == "exit":
            raise SystemExit(0)
        elif word == "fill":
            held = bytearray(8 * 2**30)
        elif word == "unjudgeable":
            raise Unjudgeable("UNSUPPORTED_INPUT", "line one\\nline two")
        elif word == "nan":
            return Judgement(float("nan"), "fine", (Component("a", 1.0),))
        elif word == "range":
            return Judgement(7.0, "fine", (Component("a", 7.0),))
        elif word == "verdict":
            return Judgement(1.0, "other", (Component("a", 1.0),))
        elif word == "shape":
            return {"reward": 1.0}
        elif word == "flood":
            return Judgement(1.0, "fine", (Component("a", 1.0),), extracted_answer="x" * 2**25)
        elif word == "pid":
            return Judgement(1.0, "fine", (Component("a", 1.0),), extracted_answer=str(os.getpid()))
        return Judgement.composed("fine", (Component("a", 1.0),), explanation="a\\nb")

class Glancing(Chaos):
    """Judges short words in the server's own process, the others in a worker."""

    spec = VerifierSpec("glancing", "1", "Judges at a glance what is short.", (), 0.0, 1.0,
                        ("fine",), needs_reference=False)

    def glance(self, item):
        if item.response() == "oops at a glance":
            raise RuntimeError("not at a glance")
        if item.response() == "refuse at a glance":
            raise Unjudgeable("UNSUPPORTED_INPUT", "seen at a glance")
        if len(item.response()) > 8:
            return None
        return Judgement.composed("fine", (Component("a", 1.0),), explanation="at a glance")

class Hasty(Chaos):
    """Judges in the server's own process, and is slow or misbehaves in a worker only."""

    spec = VerifierSpec("hasty", "1", "Misbehaves in a parcel.", (), 0.0, 1.0, ("fine",),
                        needs_reference=False, isolation="inline")

    def judge(self, item):
        if "assay.kit.pool.fork_server" not in sys.orig_argv:
            return Judgement.composed("fine", (Component("a", 1.0),), explanation="a b")
        if item.response().endswith("slow"):
            time.sleep(0.03)
        return super().judge(item)

class Lazy(Chaos):
    """Must be prepared, and says in which process it was."""

    spec = VerifierSpec("lazy", "1", "Is slow to load.", (), 0.0, 1.0, ("fine",), lazy=True,
                        needs_reference=False, cacheable=False)
    prepared = None

    def prepare(self):
        Lazy.prepared = os.getpid()

    def judge(self, item):
        return Judgement.composed("fine", (Component("a", 1.0),),
                                  explanation=f"{Lazy.prepared} {os.getpid()}")

class LazyAndSick(Lazy):
    spec = VerifierSpec("lazy-sick", "1", "Cannot be loaded.", (), 0.0, 1.0, ("fine",), lazy=True,
                        needs_reference=False)

    def prepare(self):
        raise ImportError("no such library")

    def judge(self, item):
        raise ImportError("no such library")

class Sick(Chaos):
    spec = VerifierSpec("sick", "1", "Fails its self-test.", (), 0.0, 1.0, ("fine",))
    examples = (VerifierExample(VerifierItem(Candidate("raise")), "fine"),)
'''

NAMES = ["chaos", "glancing", "hasty", "lazy", "lazy-sick", "sick"]
"""What is served of them; one more cannot be imported and is left out."""


def install(folder: Path) -> Path:
    """Puts the plug-ins into a folder, which has to be on the path; returns it."""
    (folder / "assay_chaos.py").write_text(CHAOS)
    info = folder / "assay_chaos-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: assay-chaos\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[assay.verifiers]\nchaos = assay_chaos:Chaos\nsick = assay_chaos:Sick\n"
        "glancing = assay_chaos:Glancing\nhasty = assay_chaos:Hasty\nlazy = assay_chaos:Lazy\n"
        "lazy-sick = assay_chaos:LazyAndSick\n"
        "gone = assay_chaos_that_is_not_there:Nothing\n"
    )
    return folder
