"""What README and the results say of the quickstart is what its command gave.

bench/quickstart.json holds five seeds, one run each; `python -m bench.quickstart record` writes it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench import quickstart

from assay.kit.runs.stats import wilson

AIM = 0.8


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(quickstart.RECORD.read_text())
    return told


def shown(right: int, of: int) -> str:
    low, high = wilson(right, of)
    return f"{right / of:.1%}  [{low:.1%}, {high:.1%}]"


def test_the_record_is_of_the_settings_as_they_are(recorded: dict[str, Any]) -> None:
    assert recorded["settings_sha256"] == quickstart.digest(), (
        "configs/quickstart.toml has changed: run seeds 0 to 4 again, then `python -m "
        "bench.quickstart record RUN_FOLDER...`, and bring README and "
        "docs/understand/results/quickstart.md up to date"
    )


def test_comments_do_not_count_and_values_do(tmp_path: Path) -> None:
    text, copy = quickstart.SETTINGS.read_text(), tmp_path / "copy.toml"
    copy.write_text(f"# another comment\n{text}\n\n")
    assert quickstart.digest(copy) == quickstart.digest()
    copy.write_text(text.replace("learning_rate = ", "learning_rate = 1"))
    assert quickstart.digest(copy) != quickstart.digest()


def test_every_seed_reaches_the_aim(recorded: dict[str, Any]) -> None:
    assert [run["seed"] for run in recorded["runs"]] == [0, 1, 2, 3, 4]
    assert len({run["before"] for run in recorded["runs"]}) <= 2  # greedy, before any seed acts
    for run in recorded["runs"]:
        assert run["after"] / run["judged"] >= AIM, run
        assert run["after"] - run["before"] == run["gained"] - run["lost"], run


def test_readme_shows_seed_0(repository: Path, recorded: dict[str, Any]) -> None:
    text = (repository / "README.md").read_text()
    first = recorded["runs"][0]
    row = re.search(r"│ accuracy  \[95 % interval\] │ +(\S+  \[.+?\]) │ +(\S+  \[.+?\]) │", text)
    counts = re.search(r"│ correct of judged +│ +(\d+) of (\d+) │ +(\d+) of (\d+) │", text)
    assert row
    assert counts
    of = first["judged"]
    assert row.groups() == (shown(first["before"], of), shown(first["after"], of))
    assert tuple(map(int, counts.groups())) == (first["before"], of, first["after"], of)
    assert f"{of} held-out prompts, greedy" in text


def test_the_results_show_every_seed(repository: Path, recorded: dict[str, Any]) -> None:
    pages = sorted((repository / "docs" / "understand" / "results").glob("*.md"))
    text = "\n".join(page.read_text() for page in pages)
    for run in recorded["runs"]:
        low, high = (100 * end for end in wilson(run["after"], run["judged"]))
        share = 100 * run["after"] / run["judged"]
        wanted = f"| **{share:.1f} %** [{low:.1f}, {high:.1f}] |"
        lines = [line for line in text.splitlines() if line.startswith(f"| {run['seed']} |")]
        assert any(wanted in line for line in lines), (run["seed"], wanted)
