"""Asks whether a pinned dependency has a known vulnerability: `make audit`.

python scripts/audit.py PIP_AUDIT [--where-reachable]

PIP_AUDIT, the program, is asked about constraints.txt. Packages that it has no data of are not said
to be sound: by itself it ends with "no known vulnerabilities" when its database is out of reach.

Exits with 0 when every package was looked up and none has a known vulnerability; with 1 when one
has; with 3 when some could not be looked up, or with 0 and a line that says so where
--where-reachable is given and none could be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
VULNERABLE, NOT_AUDITED = 1, 3
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Audit:
    """What pip-audit found.

    Attributes:
        looked_up: how many packages its database knows.
        unknown: those that it has no data of, sorted.
        vulnerable: a line for each known vulnerability.
    """

    looked_up: int
    unknown: list[str]
    vulnerable: list[str]


def read_report(text: str) -> Audit:
    """Reads the JSON that pip-audit writes.

    Raises:
        ValueError: it is no such report.
    """
    try:
        packages = json.loads(text)["dependencies"]
        unknown = sorted(package["name"] for package in packages if "skip_reason" in package)
        vulnerable = [
            f"{package['name']} {package['version']}: {found['id']}, mended in "
            f"{', '.join(found['fix_versions']) or 'no version yet'}"
            for package in packages
            if "skip_reason" not in package
            for found in package["vulns"]
        ]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"pip-audit wrote no report: {text[:200]!r}") from error
    return Audit(len(packages) - len(unknown), unknown, vulnerable)


def conclude(audit: Audit, where_reachable: bool) -> tuple[int, list[str]]:
    """The exit status and what to print."""
    if audit.vulnerable:
        return VULNERABLE, audit.vulnerable
    if not audit.unknown:
        return 0, [f"audit: {audit.looked_up} packages, no known vulnerability"]
    if not audit.looked_up:
        text = "audit: not audited, for the database of vulnerabilities is out of reach"
        return (0 if where_reachable else NOT_AUDITED), [text]
    return NOT_AUDITED, [f"audit: no data of {', '.join(audit.unknown)}"]


def main(arguments: Sequence[str]) -> int:
    """Runs pip-audit and says what it found."""
    program, *rest = arguments
    command = [program, "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    try:
        audit = read_report(done.stdout)
    except ValueError as error:
        print(f"audit: {error}\n{done.stderr[-2000:]}", file=sys.stderr)
        return NOT_AUDITED
    status, lines = conclude(audit, "--where-reachable" in rest)
    print(*lines, sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
