"""docs/operate/sessions.md says what the sandbox's flags are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from assay.sandbox.__main__ import cli
from assay.sandbox.config import ENVIRONMENT_PREFIX, SessionsConfig

NAMED = {"replica_name": "the host's name and the port"}


def test_every_setting_of_sessions_is_listed_with_its_variable_and_default(
    repository: Path,
) -> None:
    page = (repository / "docs/operate/sessions.md").read_text(encoding="utf-8")
    table = page.partition("<!-- settings")[2].partition("<!-- end of settings")[0]
    listed = re.findall(r"^\| `(\S+)` \| `(\S+)` \| (.+?) \|", table, re.MULTILINE)
    options = {option.name for option in cli.params}
    expected = []
    for one in fields(SessionsConfig):
        if one.name != "sessions":
            assert one.name in options
            flag = f"--{one.name.replace('_', '-')}"
            variable = f"{ENVIRONMENT_PREFIX}_{one.name.upper()}"
            expected.append((flag, variable, NAMED.get(one.name, str(one.default))))
    assert listed == expected
    assert "`--no-sessions`" in page
