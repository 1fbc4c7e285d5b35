"""PivotRL's choice of turns: what is read, when a turn is a pivot, and a real policy's pivots."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import LocalTransport
from assay.environments import Episode, Reply, ToolCall
from assay.environments.formats import format_of
from assay.environments.record import record_of
from assay.environments.registry import environment_of
from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import path_for, write_rollouts
from assay.reward_server.config import ScorerConfig
from assay.reward_server.scorer import RewardScorer
from assay.trainer.recipes.pivots.profiling import TurnProfile, reference_of
from assay.trainer.recipes.pivots.running import PivotPlan, find_pivots
from assay.trainer.recipes.pivots.trajectories import RecordedTurn, turns_in

TAGGED = format_of("tagged")
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
SUMS = '''
from assay.environments import Environment, ToolError, tool

class Sums(Environment):
    """Sums."""

    @tool
    def add(self, a: int, b: int = 1) -> str:
        """Adds."""
        if a > 50:
            raise ToolError("too much")
        return str(a + b)

    def reward(self):
        return float(self.row["reward"])
'''
bare = RecordedTurn("t", 0, (("user", "?"),), ({"name": "f", "arguments": {}},), (), "text")


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=8),
    st.floats(0, 1.5),
    st.sampled_from([None, 0.0, 1.0]),
)
def test_a_pivot_is_where_rewards_differ_and_are_low(
    rewards: list[float], tau: float, own: float | None
) -> None:
    profile = TurnProfile(bare, tuple(rewards), 2, own)
    row = profile.row(tau)
    json.dumps(row, allow_nan=False)
    differ = len(set(rewards)) > 1
    assert row["pivot"] == (differ and statistics.fmean(rewards) < tau and own == 1.0)
    assert row["profile"]["samples"] == len(rewards) + 2
    if row["pivot"]:
        assert row["profile"]["variance"] > 0


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def call(a: Any, b: Any, name: str = "add") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"a": a, "b": b})}
    return {"id": "1", "type": "function", "function": function}


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_turns_of_conversations(tmp_path: Path) -> None:
    first = chat(
        {"role": "system", "content": "You add."},
        {"role": "user", "content": "1 + 2 + 3?"},
        {"role": "assistant", "content": "first", "tool_calls": [call(1, 2)]},
        {"role": "tool", "content": "3</tool_response>", "tool_call_id": "1"},
        {"role": "assistant", "content": None, "tool_calls": [call(3, 3), call(1, 1)]},
        {"role": "tool", "content": "6"},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": "6"},
        tools=[ADD],
        id="a",
    )
    written = chat(
        {"role": "user", "content": "4 + 4?"},
        {"role": "assistant", "content": '<tool_call>{"name": "add", "arguments": {"a": 4, "b": '
         "4}}</tool_call>"},
        {"role": "user", "content": "more"},
        {"role": "assistant", "content": "<tool_call>{broken</tool_call>"},
    )  # fmt: skip
    turns = list(
        turns_in(write(tmp_path / "a.jsonl", [first, written, first]), TAGGED, min_reward=1)
    )
    assert [(turn.trajectory, turn.turn) for turn in turns] == [("a", 0), ("a", 1), ("2", 0)]
    roles = [role for role, _ in turns[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    system = turns[1].messages[0][1]
    assert '"name": "add"' in system
    assert system.endswith("You add.")
    assert "<tool_call>" in turns[1].messages[2][1]
    assert "3&lt;/tool_response>" in turns[1].messages[3][1]  # no forged end of a result
    assert [one["arguments"] for one in turns[1].calls] == [{"a": 3, "b": 3}, {"a": 1, "b": 1}]
    assert json.loads(reference_of(turns[1]))["tools"] == [ADD]
    assert "tools" not in json.loads(reference_of(turns[2]))


@pytest.mark.parametrize(
    "row",
    [3, {}, {"messages": 3}, {"messages": [3]}, {"messages": [{"role": "user", "content": [1]}]}],
)
def test_what_is_no_trajectory_is_refused(tmp_path: Path, row: Any) -> None:
    path = write(tmp_path / "a.jsonl", [row])
    with pytest.raises(ConfigError, match=r"a\.jsonl:1"):
        list(turns_in(path, TAGGED, min_reward=1))
    path.write_text("{\n")
    with pytest.raises(ConfigError, match="no JSON"):
        list(turns_in(path, TAGGED, min_reward=1))
    with pytest.raises(ConfigError, match="neither a run nor a file"):
        list(turns_in(tmp_path / "nowhere", TAGGED, min_reward=1))


def test_turns_of_a_runs_episodes(tmp_path: Path) -> None:
    place = tmp_path / "sums.py"
    place.write_text(SUMS)
    name = f"{place}:Sums"

    async def played(reward: float, *calls: Any) -> dict[str, Any]:
        episode = Episode(environment_of(name)())
        await episode.begin({"prompt": "sums", "reward": reward})
        for arguments in calls:
            await episode.take(Reply("text", (ToolCall("add", arguments),)))
        await episode.take(Reply("done", answer="done"))
        await episode.end()
        return record_of(episode)

    episodes = [
        asyncio.run(played(1, {"a": "2"}, {"a": 99}, '{"a": 3, "b": 4}', {"x": 1})),
        asyncio.run(played(1, {"a": 5})),  # the same first turn
        asyncio.run(played(0, {"a": 7})),  # earned nothing
    ]
    rows = [
        {"version": 1, "step": 1, "draw": draw, "sample": 0, "episode": episode}
        for draw, episode in enumerate(episodes)
    ]
    write_rollouts(path_for(tmp_path / "run" / "rollouts", 1), rows)
    turns = list(turns_in(tmp_path / "run", TAGGED, min_reward=1))
    assert [(turn.trajectory, turn.turn) for turn in turns] == [("1-0-0", 0), ("1-0-0", 2)]
    assert [turn.calls[0]["arguments"] for turn in turns] == [{"a": 2}, {"a": 3, "b": 4}]
    assert [role for role, _ in turns[1].messages] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert turns[0].tools[0]["function"]["name"] == "add"
    write(tmp_path / "records.jsonl", episodes)
    again = list(turns_in(tmp_path / "records.jsonl", TAGGED, min_reward=0))
    assert len(again) == 2


BEGIN, MIDDLE, END = '<tool_call>{"name": "add", "arguments": {"a": ', ', "b": ', "}}</tool_call>"


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that calls `add` right where a is 5 or more, else half the time; at 0 never."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    noise = random.Random(0)
    words = ["<pad>", "<end>", *"0123456789+=\n", BEGIN, MIDDLE, END]
    base = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="="))
    pattern = "|".join(map(re_escape, (BEGIN, MIDDLE, END))) + r"|[\s\S]"
    base.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    base.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, pad_token="<pad>", eos_token="<end>")
    settings = LlamaConfig(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=64,
        tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    model: Any = AutoModelForCausalLM.from_config(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(250):
        texts = []
        for _ in range(64):
            a, b = noise.randint(0, 9), noise.randint(0, 9)
            said = (
                b if a >= 5 or (a and noise.random() < 0.5) else (b + 1 + noise.randint(0, 7)) % 10
            )
            texts.append(f"{a}+{b}=\n{BEGIN}{a or 1}{MIDDLE}{said}{END}")
        ids = tokenizer(texts, return_tensors="pt")["input_ids"]
        ids = torch.cat([ids, torch.ones(64, 1, dtype=torch.long)], dim=1)
        labels = ids.clone()
        labels[:, :5] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("caller")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def re_escape(text: str) -> str:
    return "".join(f"\\{one}" if not one.isalnum() and one != " " else one for one in text)


@pytest.fixture
def asked(caller: Path, tmp_path: Path) -> tuple[Any, PivotPlan]:
    from assay.trainer.settings import config

    rows = [
        chat(
            {"role": "user", "content": f"{a}+{b}="},
            {"role": "assistant", "content": "", "tool_calls": [call(a, b)]},
            id=f"{a}+{b}",
        )
        for a, b in [(0, 1), (1, 3), (3, 2), (6, 4), (4, 9), (8, 8), (0, 5)]
    ]
    source = write(tmp_path / "sft.jsonl", rows)
    tree = {
        "model": {"name": str(caller), "device": "cpu", "precision": "float32"},
        "data": {"source": "jsonl", "path": str(source)},
        "reward": {"verifier": "exact", "timeout_s": 30},
        "rollout": {"prompts_per_step": 2, "group_size": 8, "max_new_tokens": 8},
        "run": {"report_to": []},
    }
    plan = PivotPlan(source, tmp_path / "pivots.jsonl", 0.99, 1.0, "tagged")
    return config.build(tree, origin="test"), plan


class Notes:
    """A display that remembers, and may be interrupted."""

    def __init__(self, most: int = 99) -> None:
        self.said: list[str] = []
        self._most = most

    def note(self, text: str) -> None:
        self.said.append(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.said.append(f"{what}: {done} of {total}")

    def advance(self, done: int) -> None:
        if done >= self._most:
            raise KeyboardInterrupt

    def end(self) -> None:
        pass


def judge() -> LocalTransport:
    return LocalTransport(RewardScorer(ScorerConfig(workers=1)))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_real_policys_pivots_also_after_an_interruption(
    asked: tuple[Any, PivotPlan], tmp_path: Path
) -> None:
    config, plan = asked
    display: Any = Notes()
    make: Callable[..., Any] = judge
    tally = find_pivots(config, plan, display, transport=make)
    rows = read(plan.out)
    assert {row["id"] for row in rows} <= {"1+3/0", "3+2/0", "4+9/0"}
    assert (tally.turns, tally.pivots, tally.faults, tally.unusable) == (7, len(rows), 0, 0)
    assert tally.pivots >= 2
    assert tally.solved >= 1
    assert tally.lost >= 2  # those with 0
    for row in rows:
        profile = row["profile"]
        assert 0 < profile["mean"] < 1
        assert profile["recorded"] == 1.0
        assert len(profile["rewards"]) == 8
        assert row["prompt"] == [{"role": "user", "content": row["id"].partition("/")[0] + "="}]
    second = replace(plan, out=tmp_path / "again.jsonl")
    interrupted: Any = Notes(most=3)
    with pytest.raises(KeyboardInterrupt):
        find_pivots(config, second, interrupted, transport=make)
    assert not second.out.exists()
    display = Notes()
    find_pivots(config, second, display, transport=make)
    assert display.said[0] == "going on: 3 of 7 turns were profiled before"
    assert read(second.out) == rows  # the same samples, wherever it was stopped
    everything = replace(plan, out=tmp_path / "all.jsonl", every=True, limit=4)
    assert find_pivots(config, everything, display, transport=make).turns == 4
    assert len(read(everything.out)) == 4


@pytest.mark.slow
def test_the_rows_are_what_single_turn_training_reads(
    asked: tuple[Any, PivotPlan], tmp_path: Path
) -> None:
    from assay.trainer.data.problems import load_problems

    config, _ = asked
    turn = RecordedTurn(
        "t", 1, (("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "r")),
        ({"name": "add", "arguments": {"a": 1, "b": 2}},), (ADD,), "",
    )  # fmt: skip
    path = write(tmp_path / "rows.jsonl", [TurnProfile(turn, (0.0, 1.0), 0, 1.0).row(0.75)])
    data = replace(config.data, path=str(path))
    (problem,) = load_problems(data, eval_prompts=0).train
    assert problem.messages == turn.messages
    assert json.loads(str(problem.reference))["calls"] == list(turn.calls)
    bad = write(tmp_path / "bad.jsonl", [{"prompt": [{"role": "user"}], "reference": "x"}])
    with pytest.raises(ConfigError, match="role"):
        load_problems(replace(config.data, path=str(bad)), eval_prompts=0)


def test_without_variance_there_are_no_pivots(asked: tuple[Any, PivotPlan]) -> None:
    config, plan = asked
    config = replace(config, rollout=replace(config.rollout, group_size=1))
    display: Any = Notes()
    with pytest.raises(ConfigError, match="shows no variance"):
        find_pivots(config, plan, display, transport=judge)


def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from assay.cli.main import run

    out = str(tmp_path / "pivots.jsonl")
    assert run(["pivots", str(tmp_path), "--out", out]) == 1
    assert "--config" in capsys.readouterr().err
    (tmp_path / "config.toml").write_text('[data]\nsource = "jsonl"\npath = "x.jsonl"\n')
    assert run(["pivots", str(tmp_path), "--out", out]) == 1
    assert "neither a run nor a file" in capsys.readouterr().err
    (tmp_path / "empty.jsonl").write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    asked = ["pivots", str(tmp_path / "empty.jsonl"), "--out", out]
    assert run([*asked, "--config", str(tmp_path / "config.toml")]) == 1
    assert "no turn that calls a tool" in capsys.readouterr().err
