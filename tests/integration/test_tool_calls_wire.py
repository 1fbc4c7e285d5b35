"""Tool calls through a real server: apart from the text, typed in a worker, in the journal."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from bench.tool_formats import RENDERERS

from assay.clients import Data, EmbeddedServices, Item, RewardClient, ToolCall, Turn
from assay.clients.rows.items import Defaults, Keys, item_of
from assay.viewer.journals.reader import Reader
from assay.viewer.journals.rows import is_whole, row_of

TOOL = {
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
GIVEN: dict[str, Any] = {"city": "7", "days": 3}
PLAIN = Data({"calls": [{"name": "weather", "arguments": GIVEN}]})
TYPED = Data({"calls": [{"name": "weather", "arguments": GIVEN}], "tools": [TOOL]})


def item(**given: Any) -> Item:
    return Item(verifier="tool-call", **{"reference": PLAIN, **given})


@pytest.mark.slow
def test_calls_are_judged_kept_and_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    right, wrong = ToolCall("weather", GIVEN), ToolCall("weather", json.dumps({"city": 7}))
    turns = [
        Turn("user", "How is it?"),
        Turn("assistant", "", from_policy=True, tool_calls=[right]),
        Turn("tool", "Wet."),
        Turn("assistant", "It is wet.", from_policy=True),
    ]
    coder = RENDERERS["qwen3-coder"][1]
    items = [
        item(tool_calls=[right]),
        item(response="I look.", tool_calls=[wrong]),
        item(response="I look.", tool_calls=[right], reference=TYPED),
        item(turns=turns),
        item(response=coder([("weather", GIVEN)]), reference=TYPED),
        item(response=coder([("weather", {**GIVEN, "days": 4})]), reference=TYPED),
        item(response=coder([("weather", GIVEN)]), parameters={"format": "mistral"}),
        item(response=coder([("weather", {})]), parameters={"format": "mistral"}),
    ]
    wanted = [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, None, 0.0]
    flags = {"reward": ["--journal", str(path), "--workers", "1"]}
    with (
        EmbeddedServices(arguments=flags) as services,
        RewardClient(services.address) as client,
    ):
        results = client.score(items)
        assert [result.reward for result in results] == wanted
        assert results[6].fault is not None
        assert results[6].fault.reason == "UNSUPPORTED_INPUT"
        deadline_s = time.monotonic() + 20
        rows: list[dict[str, Any]] = []
        while len(rows) < len(items) and time.monotonic() < deadline_s:
            time.sleep(0.1)
            with Reader(path) as reader:
                rows = [json.loads(json.dumps(row_of(one))) for one in reader.each()]
        assert all(is_whole(row) for row in rows)
        again = [item_of(Keys(), Defaults(), row, str(row["id"])) for row in rows]
        kept = [row["reward"] for row in rows]
        assert sorted(kept, key=str) == sorted(wanted, key=str)
        assert [result.reward for result in client.score(again)] == kept
