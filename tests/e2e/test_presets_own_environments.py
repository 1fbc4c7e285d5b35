"""Presets of episodes as `assay train` runs them: with the environment and the verifier that the
file names, and real services. The model is small and says whole phrases; counts are small.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assay.kit.runs.records import read_rows
from trainer_support import tiny_tokenizer

CORPUS = [
    {"id": "d1", "title": "Paris", "text": "Paris is the capital of France and lies on the Seine."},
    {"id": "d2", "title": "Rome", "text": "Rome is the capital of Italy and lies on the Tiber."},
    {"id": "d3", "title": "Oslo", "text": "Oslo is the capital of Norway, beside a fjord."},
]


def call(name: str, **arguments: Any) -> str:
    """A call in the format `tagged`."""
    told = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>{told}</tool_call>"


@dataclass(frozen=True)
class World:
    """What a preset needs of its user.

    Attributes:
        rows: of the data.
        phrases: that the policy says, each with its weight.
        behind: what it says instead where the last character that it reads is this one.
        seen: texts in the records of some of its episodes.
        settings: of the environment.
        overrides: beside these.
    """

    rows: Sequence[Any]
    phrases: dict[str, float]
    seen: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    behind: dict[str, dict[str, float]] = field(default_factory=dict)
    overrides: Sequence[str] = ()


SUM = [
    {"question": f"What is {a} times {b}?", "answer": "42"}
    for a, b in ((6, 7), (7, 6), (3, 14), (2, 21))
]


def python(asked: str) -> World:
    """Sums, for a policy that asks Python so."""
    said = {asked: 3, "\\boxed{42}": 3, "\\boxed{36}": 3, "I do not know.": 1, "": 1}
    return World(SUM, said, ["42\\n"])  # which the program printed


TALKS = [
    {
        "prompt": "Please cancel my order.",
        "user": {"script": [{"when": "done", "say": "Thanks. Bye.", "done": True}]},
        "state": {"orders": {order: {"status": "open"}}},
        "expected": {"orders": {order: {"status": "cancelled"}}},
    }
    for order in ("o1", "o2")
]
CHANGES = [
    call("change_record", table="orders", id=order, field="status", value="cancelled")
    for order in ("o1", "o2")
]
ASKED = "<question>Which town on the Seine is the capital of the land called France here?"
TURNS = [{"name": "add", "arguments": {"a": n, "b": 2}} for n in (1, 2)]
WORLDS: dict[str, World] = {
    "retool": python(call("python", code="print(6 * 7)")),
    "simple_tir": python("```python\nprint(6 * 7)\n```"),
    "search_self_play": World(
        [{"answer": "Paris", "hint": "Search, and ask!"}, {"answer": ["Paris"], "hint": "Ask!"}],
        {f"{ASKED}</question>": 1, "<answer>Paris</answer>": 1},
        ["[d1]", '"checker"', '"solver#5"'],
        {"corpus": "docs.jsonl"},
        {
            "!": {call("search", query="capital Seine") + call("search", query="France"): 1},
            "?": {"<answer>Paris</answer>": 1, "<answer>Rome</answer>": 1},
        },
        ["rollout.prompts_per_step=4"],
    ),
    "pivot_rl": World(
        [
            {
                "prompt": [{"role": "user", "content": f"{n} + 2?"}],
                "reference": json.dumps([one]),
                "profile": {"mean": 0.5},
            }
            for n, one in enumerate(TURNS, start=1)
        ],
        {call(one["name"], **one["arguments"]): 1 for one in TURNS},
    ),
    "archer": World(
        TALKS,
        {**dict.fromkeys(CHANGES, 2), "It is done.": 3, "What?": 1},
        ["Thanks. Bye."],
        overrides=["method.critic.pretrain_steps=1", "rollout.prompts_per_step=4"],
    ),
    "supo": World(
        [{"question": f"Which river has {town}?", "answer": river}
         for town, river in (("Paris", "Seine"), ("Rome", "Tiber"))],
        {
            call("search", query="capital river"): 6,
            "<answer>Seine</answer>": 1,
            "<answer>Tiber</answer>": 1,
            "<summary>Paris: Seine</summary>": 2,
        },
        ["d1", "Paris: Seine"],
        {"corpus": "docs.jsonl", "summary_turns": 1},
    ),
    "dr_mas": World(
        [{"words": ["harp", "lute"], "seed": n} for n in range(4)],
        {
            **{f"<clue>{one}</clue>": 1 for one in ("strings", "wood", "old", "a harp", "sound")},
            **{f"<vote>{n}</vote>": 1 for n in (1, 2, 3)},
        },
        ['"spy"', '"voter#2"'],
    ),
}  # fmt: skip


def speaking_model(folder: Path, world: World) -> None:
    """A model that says one of the phrases, with chances as their weights.

    Its weights are set by hand: the last token alone decides, a phrase is a token, and behind one
    comes the end.
    """
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    tokenizer = tiny_tokenizer()
    spoken = [world.phrases, *world.behind.values()]
    tokenizer.add_tokens(sorted({one for phrases in spoken for one in phrases if one}))
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, head_dim=8, max_position_embeddings=32768,
        tie_word_embeddings=False, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None, rms_norm_eps=1e-6,
    )  # fmt: skip
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(settings)
    number = tokenizer.convert_tokens_to_ids
    with torch.no_grad():
        layer = model.model.layers[0]
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        read, says = model.model.embed_tokens.weight.zero_(), model.lm_head.weight.zero_()
        says[:] = -5.0
        read[:, 0] = 1.0  # which is 4 once it is normed
        for place, character in enumerate(world.behind, start=2):
            read[number(character)] = torch.eye(16)[place]
        for place, phrases in zip((0, *range(2, 16)), spoken, strict=False):
            for phrase, weight in phrases.items():
                says[number(phrase or "<end>"), place] = math.log(weight) / 4
                if phrase:
                    read[number(phrase)] = torch.eye(16)[1]
        says[tokenizer.eos_token_id, 1] = 5.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def trained(preset: Path, world: World, tmp_path: Path, *more: str) -> Path:
    """The folder of a run of the command, in the working folder."""
    from assay.cli.main import run

    speaking_model(tmp_path / "model", world)
    for file, rows in (("rows.jsonl", world.rows), ("docs.jsonl", CORPUS)):
        Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = [
        "data=rows.jsonl", "model=./model", "model.device=cpu", "model.precision=float32",
        "rollout.prompts_per_step=2", "rollout.group_size=4", "rollout.max_new_tokens=16",
        "optim.mini_batches=1", "optim.warmup_steps=0", "optim.learning_rate=1e-3",
        "eval.prompts=0", "run.steps=1", "run.report_to=[]", "run.dir=runs", "run.name=own",
        *(f"method.episodes.settings.{key}={value}" for key, value in world.settings.items()),
        *world.overrides, *more,
    ]  # fmt: skip
    assert run(["train", str(preset), *small]) == 0
    (folder,) = Path("runs").iterdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_a_preset_trains_in_its_own_environment(
    name: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = WORLDS[name]
    monkeypatch.chdir(tmp_path)
    folder = trained(repository / "configs" / f"{name}.toml", world, tmp_path)
    (row,) = read_rows(folder / "metrics.jsonl")
    samples = read_rows(folder / "samples.jsonl")
    assert row["step"] == 1
    assert row["fault_ratio"] == 0, [one["fault_message"] for one in samples]
    assert row["grad_norm"] > 0
    assert math.isfinite(row["loss"])
    with gzip.open(folder / "rollouts" / "000001.jsonl.gz", "rt") as file:
        told = file.read()
    assert [text for text in world.seen if text not in told] == []


@pytest.mark.slow
def test_self_play_and_verifiable_rewards_train_in_turns(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = trained(
        repository / "configs" / "dr_mas.toml", WORLDS["dr_mas"], tmp_path, "run.steps=3",
        'method.phases.decides=["voter"]', "method.phases.least_steps=1",
        "method.phases.most_steps=1", "method.episodes.settings.wrong=-1",
        "method.episodes.settings.unsure=-0.5",
    )  # fmt: skip
    rows = read_rows(folder / "metrics.jsonl")
    assert [row["phases_play"] for row in rows] == [1.0, 0.0, 1.0]
    assert 0 < rows[0]["phases_accuracy"] < 0.05  # a twentieth of the first step's share
    for step, row in enumerate(rows, start=1):
        with gzip.open(folder / "rollouts" / f"{step:06}.jsonl.gz", "rt") as file:
            episodes = [json.loads(line) for line in file]
        roles: set[bool] = set()
        for one in episodes:
            for start, end, _turn, _context, agent in one["own"]:
                if any(first < end and start < last for first, last in one["trained"]):
                    roles.add(agent.startswith("voter"))
        assert roles == {row["phases_play"] == 0.0}


@pytest.mark.slow
def test_a_logged_trace_is_gone_along_and_patched(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Semi-online: right calls go on in the conversation, wrong ones behind the logged call."""
    from transformers import AutoTokenizer

    schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
    tool = {"name": "press", "description": "Presses a button.", "parameters": schema}
    messages: list[Any] = [{"role": "user", "content": "Press 1, thrice."}]
    for number in range(3):
        made = {"name": "press", "arguments": json.dumps({"at": 1})}
        messages.append({"role": "assistant", "tool_calls": [{"id": "c", "function": made}]})
        messages.append({"role": "tool", "tool_call_id": "c", "content": f"pressed {number}"})
    row = {"messages": messages, "tools": [{"type": "function", "function": tool}]}
    world = World([row, row], {call("press", at=n): 1 for n in (1, 2)})
    monkeypatch.chdir(tmp_path)
    folder = trained(
        repository / "configs" / "dr_mas.toml", world, tmp_path,
        "method.name=ours", "method.episodes.environment=trace",
        "method.turn_credit={unit = \"turn\", reach = \"context\", discount = 0.5, "
        "episode_weight = 1.0}",
    )  # fmt: skip
    (metrics,) = read_rows(folder / "metrics.jsonl")
    assert metrics["grad_norm"] > 0
    assert metrics["fault_ratio"] == 0
    assert metrics["episodes_refused"] == 0
    with gzip.open(folder / "rollouts" / "000001.jsonl.gz", "rt") as file:
        episodes = [json.loads(line) for line in file]
    assert any(len(one["contexts"]) == 2 for one in episodes)
    asked = AutoTokenizer.from_pretrained(tmp_path / "model").decode(episodes[0]["prompt_ids"])
    assert "Presses a button." in asked
    for one in episodes:
        steps = one["episode"]["steps"]
        wrong = ["2" in step["text"] for step in steps]
        assert len(steps) == 3 or wrong.count(True) == 2
        assert len(one["contexts"]) == 1 + (True in wrong[:-1])
        assert [step["reward"] for step in steps] == [0.5 if one else 1.0 for one in wrong]
