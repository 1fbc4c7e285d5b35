"""`assay up` passes on what an operator asks for, and says so."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from assay.clients import Item, RewardClient
from assay.clients.execution import CallTest, TestSuite, suite_to_proto
from assay.kit.tokens import hash_token, new_token
from assay.viewer.journals.reader import Reader

COMMAND = [sys.executable, "-c", "from assay.cli.__main__ import main; main()"]
ONE = suite_to_proto(TestSuite([CallTest("f", (), 1)]))


@pytest.mark.slow
def test_up_passes_on_what_an_operator_asks_for(tmp_path: Path) -> None:
    profiles, settings = tmp_path / "house.toml", tmp_path / "reward.toml"
    profiles.write_text(
        '[[profile]]\nname = "house"\ndescription = "Ours."\n'
        '[[profile.component]]\nname = "answer"\nverifier = "exact"\n'
    )
    settings.write_text('workers = 1\nlog-level = "ERROR"\n')
    (tmp_path / "token").write_text("one-token\n")
    team = new_token()
    (tmp_path / "tenants").write_text(hash_token("team-a", team).line)
    command = [*COMMAND, "up", "--port", "0", "--metrics-port", "0", "--profiles", str(profiles),
               "--journal", str(tmp_path / "j.sqlite"), "--token-file", str(tmp_path / "token"),
               "--tokens-file", str(tmp_path / "tenants"),
               "--config", f"reward={settings}"]  # fmt: skip
    wide = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=wide) as up:  # fmt: skip
        try:
            assert up.stdout is not None
            shown = "".join(iter(up.stdout.readline, "Ctrl-C stops them.\n"))
            address = re.search(r"reward .*?(127\.0\.0\.1:\d+)", shown)
            assert address is not None, shown
            for token in ("one-token", team):
                with RewardClient(address[1], token=token) as client:
                    # The sandbox asks for the token too, and has it.
                    code = Item("```python\ndef f(): return 1\n```", verifier="code", reference=ONE)
                    results = client.score([Item("1", reference="1", verifier="house"), code])
                    assert [result.reward for result in results] == [1.0, 1.0]
            with RewardClient(address[1], token="no") as client:
                [refused] = client.score([Item("1", reference="1", verifier="house")])
                assert refused.reward is None
            metrics = re.findall(r"http://(127\.0\.0\.1:\d+)/metrics", shown)
            told = "".join(
                urllib.request.urlopen(f"http://{one}/metrics").read().decode() for one in metrics
            )
        finally:
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)
    assert 'assay_reward_items_total{tenant="team-a"} 2.0' in told
    assert 'assay_sandbox_items_total{tenant="default"} ' in told
    for text in ("j.sqlite", "house.toml", "reward.toml", "token", "tenants"):
        assert str(tmp_path / text) in shown
    assert "one-token" not in shown
    with Reader(tmp_path / "j.sqlite") as reader:
        assert reader.summary().entries == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [("reward.toml", "not of the form SERVICE=FILE.toml"), ("x=y.toml", "no service has the name"),
     ("reward=", "not of the form")],
)  # fmt: skip
def test_up_says_which_config_is_none(text: str, told: str) -> None:
    done = subprocess.run([*COMMAND, "up", "--config", text],
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1
    assert told in done.stderr
