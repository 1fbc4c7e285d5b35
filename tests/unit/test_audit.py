"""What `make audit` makes of pip-audit's report: no data is never "no vulnerability"."""

from __future__ import annotations

import json

import pytest
from scripts.audit import NOT_AUDITED, VULNERABLE, conclude, read_report

SOUND = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "Dependency not found and could not be audited: b (1)"}
BROKEN = {
    "name": "c",
    "version": "1.2",
    "vulns": [{"id": "CVE-2026-1", "fix_versions": ["1.3"], "aliases": [], "description": "x"}],
}


@pytest.mark.parametrize(
    ("packages", "where_reachable", "status", "says"),
    [
        ([SOUND], False, 0, "1 packages, no known vulnerability"),
        ([SOUND, UNKNOWN], True, NOT_AUDITED, "no data of b"),
        ([UNKNOWN], False, NOT_AUDITED, "not audited"),
        ([UNKNOWN], True, 0, "not audited"),
        ([UNKNOWN, BROKEN], True, VULNERABLE, "c 1.2: CVE-2026-1, mended in 1.3"),
    ],
)
def test_the_conclusion(
    packages: list[dict[str, object]], where_reachable: bool, status: int, says: str
) -> None:
    audit = read_report(json.dumps({"dependencies": packages, "fixes": []}))
    found, lines = conclude(audit, where_reachable)
    assert found == status
    assert says in "\n".join(lines)


@pytest.mark.parametrize("text", ["", "[]", '{"dependencies": [{"version": "1"}]}', "oops"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no report"):
        read_report(text)
