"""Holds /verify against the rewards that NeMo Gym has on file for its example rollouts.

python scripts/gym_rollouts.py CHECKOUT URL

CHECKOUT is a checkout of NVIDIA-NeMo/Gym (Apache-2.0), of which nothing is kept here; URL a reward
server's HTTP address, as http://127.0.0.1:8080, started with --sandbox-target for code_gen. Prints
a line for each environment and one for each rollout whose reward differs; why: docs/use/http.md.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

ENVIRONMENTS = {
    "mcqa": "",
    "math_with_judge": "",
    "gpqa_diamond": "?verifier=choice",
    "string_match": "",
    "instruction_following": "",
    "ifbench": "",
    "citation_if": "",
    "reasoning_gym": "",
    "code_gen": "",
    "equivalence_rule": "?verifier=match",
}
"""Environments whose rewards follow from the rollout alone, and what the URL adds."""

Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Checks all environments; 1 if a rollout has a fault."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    checkout, url = Path(arguments[0]), arguments[1].rstrip("/")
    faults = 0
    for name, query in ENVIRONMENTS.items():
        folder = checkout / "resources_servers" / name / "data"
        told = {_prompt(row): row for row in _rows(folder / "example.jsonl")}
        rollouts = _rows(folder / "example_rollouts.jsonl")
        equal = 0
        for index, rollout in enumerate(rollouts):
            body = {**told.get(_prompt(rollout), {}), **rollout}
            answer = _post(f"{url}/verify{query}", body)
            faults += "_ng_failure_class" in answer
            if "_ng_failure_class" not in answer and answer["reward"] == rollout["reward"]:
                equal += 1
                continue
            said = answer.get("_ng_failure_judge_error", answer.get("verdict"))
            print(
                f"  {name} {index}: on file {rollout['reward']}, here {answer['reward']} ({said}); "
                f"answer {answer.get('extracted_answer')!r}, expected "
                f"{body.get('expected_answer', body.get('answer'))!r}"[:300]
            )
        print(f"{name}: {equal} of {len(rollouts)} as on file")
    return int(faults > 0)


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _prompt(row: Row) -> str:
    asked = row["responses_create_params"]["input"]
    if isinstance(asked, str):
        return asked
    return json.dumps([(one.get("role"), one.get("content")) for one in asked])


def _post(url: str, body: Row) -> Row:
    request = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310 - the operator's own
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310 - as above
        answer: Row = json.load(response)
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
