"""`python -m bench [NAME ...]`: runs the named measurements, or all of them.

`python -m bench NAME --OPTION ...` passes options on to those that take some (`--help` lists them).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable

from bench.common import print_machine

BENCHES = {
    "wire": "wire",
    "http": "http_cost",
    "journal": "journal",
    "tracing": "tracing",
    "replicas": "replicas",
    "clients-adapt": "clients_adapt",
    "soak": "soak",
    "ray": "ray_pool",
    "math": "math_reward",
    "math-library": "math_library",
    "tool-call": "tool_call",
    "audits": "audits",
    "math-references": "math_references",
    "math-suites": "math_suites",
    "sandbox": "sandbox",
    "sandbox-http": "sandbox_http",
    "sandbox-fuzz": "sandbox_fuzz",
    "sandbox-adversary": "sandbox_adversary",
    "sessions": "sessions",
    "sessions-soak": "sessions_soak",
    "session-pages": "session_pages",
    "episodes": "episodes",
    "episodes-overlap": "episodes_overlap",
    "judge-rubrics": "judge_rubrics",
    "judge-speed": "judge_speed",
    "judge-batching": "judge_batching",
    "judge-injection": "judge_injection",
    "judge-reading": "judge_reading",
    "group-ranking": "group_ranking",
    "trainer-step": "trainer_step",
    "trainer-update": "trainer_update",
    "rollout-files": "rollout_files",
    "code-suspicions": "code_suspicions",
    "scoring-round": "scoring_round",
    "engine": "engine",
    "gpu-learning": "gpu_learning",
    "overlap": "overlap",
    "viewer": "viewer",
    "audit-detection": "audit_detection",
    "audit-suites": "audit_suites",
    "audit-composed": "audit_composed",
    "appeal": "appeal",
    "reliability": "reliability",
    "canary": "canary",
    "proofs": "proofs",
    "eval-suites": "eval_suites",
}


def _measurement(name: str) -> Callable[..., None]:
    run: Callable[..., None] = importlib.import_module(f"bench.{BENCHES[name]}").run
    return run


def _takes_options(name: str) -> bool:
    return bool(inspect.signature(_measurement(name)).parameters)


def main(arguments: list[str]) -> int:
    """Runs the measurements; 2 for an unknown name, or options for one that takes none."""
    first = next((n for n, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"bench: no measurement is called {unknown[0]!r}; known: {', '.join(BENCHES)}")
        return 2
    if options and len(names) != 1:
        print(f"bench: {options[0]}: name one measurement before it")
        return 2
    if options and not _takes_options(names[0]):
        print(f"bench: {options[0]}: {names[0]} takes no options")
        return 2
    if "--help" not in options:
        print_machine()
    for name in names or BENCHES:
        measure = _measurement(name)
        if _takes_options(name):
            measure(options)
        else:
            measure()
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    sys.exit(main(sys.argv[1:]))
