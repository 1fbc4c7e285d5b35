"""docs/use/http.md: every curl line does what the page says."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.reward_server.verifiers.math import MathVerifier
from http_support import serving

BLOCKS = re.compile(r"```sh\n(curl .*?)```\n```json\n(.*?)```", re.DOTALL)


def holds(wanted: Any, found: Any) -> bool:
    """Whether everything that is wanted is found; what else is found does not matter."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and holds(value, found[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(map(holds, wanted, found))
    if isinstance(wanted, float):
        return isinstance(found, float) and abs(wanted - found) < 1e-9
    return bool(wanted == found)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_every_curl_line_answers_as_written(repository: Path) -> None:
    text = (repository / "docs" / "use" / "http.md").read_text(encoding="utf-8")
    blocks = BLOCKS.findall(text)
    assert len(blocks) == text.count("curl -s"), "each curl line has its answer below it"
    async with serving(MathVerifier(), verifier="math") as facade:
        for command, answer in blocks:
            told = command.replace("127.0.0.1:8080", facade.address)
            ran = await asyncio.to_thread(
                subprocess.run, ["bash", "-c", told], capture_output=True, text=True, check=True
            )
            assert holds(json.loads(answer), json.loads(ran.stdout)), (told, ran.stdout)
