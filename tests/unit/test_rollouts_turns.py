"""What turns earn, what stands between them, and which settings are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.clients.judging.self_verification import RECONSIDER, REVISE, VERIFY
from assay.kit.errors import ConfigError
from assay.trainer.core.batch import pad
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import hooks_of
from assay.trainer.engines.seeded import uniform_rows, uniforms
from assay.trainer.engines.types import Response
from assay.trainer.methods.turns.credit import rewards_of, turn_metrics, turn_tokens
from assay.trainer.methods.turns.protocol import Protocol, protocol_of
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.rollouts.types import Collected, PolicyTurn, Unfinished
from assay.trainer.settings import config as configs
from trainer_support import tiny_tokenizer
from turns_support import RECONSIDERS, VERIFIES, dialogue

PAG = {"mode": "verify", "shaping": 1.0}
SCORE = {"mode": "reconsider", "shaping": 1.0, "independent": False}


@pytest.mark.parametrize(
    ("said", "settings", "expected"),
    [
        (("correct", "correct"), PAG, (1, 1)),
        (("correct", "wrong", "incorrect"), PAG, (1, 0, -1)),
        (("incorrect", "wrong", "correct"), PAG, (0, 1, 2)),
        (("incorrect", "wrong", "incorrect"), PAG, (0, 1, 0)),
        (("incorrect", "unparsed"), PAG, (0, 0)),
        (("incorrect", "wrong", "correct"), {**PAG, "shaping": 0.0}, (0, 1, 1)),
        (("correct", "correct"), {**PAG, "first_reward": "none"}, (0, 1)),
        # PAG without the first reward: what the verification earns, and not what comes later
        (("correct", "correct"), {**PAG, "first_reward": "verification"}, (1, 1)),
        (("incorrect", "wrong", "correct"), {**PAG, "first_reward": "verification"}, (1, 1, 2)),
        (("correct", "wrong", "fault"), {**PAG, "first_reward": "verification"}, (0, 0, None)),
        (
            ("incorrect", "wrong", "correct"),
            {**PAG, "first_reward": "verification", "independent": False},
            (0, 1, 2),
        ),
        (
            ("incorrect", "wrong", "correct"),
            {**PAG, "first_reward": "verification", "verifier_reward": False},
            (0, 0, 2),
        ),
        (("incorrect", "wrong", "correct"), {**PAG, "verifier_reward": False}, (0, 0, 2)),
        (("incorrect", "wrong", "correct"), {**PAG, "reward": "final"}, (0, 0, 1)),
        (("correct", "correct"), {**PAG, "reward": "final"}, (0, 1)),
        # SCoRe: r1 + r2 + alpha (r2 - r1)
        (("incorrect", None, "correct"), SCORE, (0, 2)),
        (("correct", None, "incorrect"), SCORE, (1, -1)),
        # a first attempt that nobody judged: no truth, no gain
        (("fault", "correct"), PAG, (None, None)),
        (("fault", "wrong", "correct"), PAG, (None, None, None)),
        (("fault", None, "correct"), SCORE, (None, None)),
        # a second one: alone, unless its reward would have reached the others
        (("incorrect", "wrong", "fault"), PAG, (0, 1, None)),
        (("incorrect", "wrong", "fault"), {**PAG, "independent": False}, (None, None, None)),
        (("incorrect", "wrong", "fault"), {**PAG, "reward": "final"}, (None, None, None)),
        (("correct", None, "fault"), SCORE, (None, None)),
        (("correct", None, "fault"), {**SCORE, "independent": True}, (1, None)),
    ],
)
def test_what_turns_earn(said: Any, settings: Any, expected: Any) -> None:
    assert rewards_of(dialogue(*said).turns, TurnsConfig(**settings)) == expected


def test_a_dialogue_without_a_reward_is_a_fault() -> None:
    tokens, reward = turn_tokens(dialogue("fault", "wrong", "correct"), TurnsConfig(**PAG))
    assert reward is None
    assert not any(tokens.trained)
    tokens, reward = turn_tokens(dialogue("incorrect", "wrong", "fault"), TurnsConfig(**PAG))
    assert reward == 1
    assert tokens.trained == (True, True, False, True, True, False, False, False)
    assert tokens.turns == (1, 1, 0, 2, 2, 0, 3, 3)
    assert tokens.roles == (1, 1, 0, 2, 2, 0, 1, 1)
    assert tokens.rewards == (0, 0, 0, 0, 1, 0, 0, 0)


def test_metrics_of_turns() -> None:
    told = turn_metrics(
        [
            dialogue("correct", "correct"),
            dialogue("correct", "wrong", "incorrect"),
            dialogue("incorrect", "wrong", "correct"),
            dialogue("incorrect", "unparsed"),
            dialogue("fault", "correct"),
        ]
    )
    assert told == {
        "turns_first_correct": 0.5,
        "turns_final_correct": 0.5,
        "turns_answer_changed": 1.0,
        "turns_verifier_accuracy": 0.5,
        "turns_correct_recall": 0.5,
        "turns_wrong_recall": 0.5,
        "turns_incorrect_to_correct": 0.5,
        "turns_correct_to_incorrect": 0.5,
        "turns_revised_to_correct": 1.0,
        "turns_revised_to_incorrect": 1.0,
        "turns_gained": 0.25,
        "turns_lost": 0.25,
        "turns_revised": 0.5,
        "turns_unparsed": 0.2,
    }
    alone = turn_metrics([dialogue("correct", None, "correct")])
    assert alone["turns_revised"] == 1
    assert not [name for name in alone if "verifier" in name or "recall" in name]
    assert turn_metrics([]) == {}


# What stands between turns.

CHATML = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] | trim }}<end>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def text_of(tokenizer: Any, ids: Any) -> str:
    return str(tokenizer.decode(list(ids)))


def test_the_template_says_what_stands_between_turns() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHATML
    protocol = protocol_of(TurnsConfig(mode="verify"), tokenizer)
    assert protocol.verifies
    for ids, ask in zip(protocol.between, (VERIFY, REVISE), strict=True):
        assert text_of(tokenizer, ids) == f"<end><|user|>{ask}<end><|assistant|>"
    reconsider = protocol_of(TurnsConfig(mode="reconsider"), tokenizer)
    assert not reconsider.verifies
    assert [text_of(tokenizer, ids) for ids in reconsider.between] == [
        f"<end><|user|>{RECONSIDER}<end><|assistant|>"
    ]
    end = tokenizer.eos_token_id
    # the policy ended its turn itself; or was cut, and the template ends it
    assert protocol.before(1, (50, end)) == protocol.between[0][1:]
    assert protocol.before(1, (50, 51)) == protocol.between[0]
    assert protocol.room(7) == 21 + sum(map(len, protocol.between))


def test_prompts_between_turns_can_be_worded_anew() -> None:
    tokenizer = tiny_tokenizer()
    config = TurnsConfig(mode="verify", verify_prompt="Sure?", revise_prompt="So?")
    protocol = protocol_of(config, tokenizer)
    assert [text_of(tokenizer, ids) for ids in protocol.between] == ["Sure?", "So?"]
    tokenizer.chat_template = None
    assert text_of(tokenizer, protocol_of(config, tokenizer).between[0]) == "\nSure?\n"


def test_a_template_that_shows_no_turns_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    with pytest.raises(ConfigError, match="shows none of the policy's earlier turns"):
        protocol_of(TurnsConfig(mode="verify"), tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages if m['role'] == 'assistant' %}{{ m['content'] }}{% endfor %}"
    )
    with pytest.raises(ConfigError, match="shows nothing behind the policy's earlier turns"):
        protocol_of(TurnsConfig(mode="verify"), tokenizer)


def test_when_a_revision_is_asked_for() -> None:
    assert VERIFIES.asks_again("wrong", validation=False)
    assert not VERIFIES.asks_again("unparsed", validation=False)
    assert VERIFIES.asks_again("unparsed", validation=True)
    assert not VERIFIES.asks_again("correct", validation=True)
    always = Protocol(VERIFIES.between, verifies=True, always=True)
    assert always.asks_again("correct", validation=False)
    assert [VERIFIES.is_verification(turn) for turn in range(3)] == [False, True, False]
    assert not RECONSIDERS.is_verification(1)
    tolerant = Protocol(VERIFIES.between, verifies=True, parsing="tolerant")
    assert tolerant.verdict("So the answer is wrong") == "wrong"
    assert VERIFIES.verdict("So the answer is wrong") == "unparsed"


def test_every_turn_has_random_numbers_of_its_own() -> None:
    rows = uniform_rows(3, [(4, 2), (4, 2, 0), (4, 2, 1), (4, 2, 2)], 500)
    assert np.array_equal(rows[0], uniforms(3, 4, 2, 500))
    assert np.array_equal(rows[0], rows[1])
    assert len(np.unique(rows[1:])) == 1500


# Settings.

ONE = "needs responses of one turn"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["method.advantage.estimator=group"],
            (
                "self-verification (method.turns.mode) needs a critic: turns are credited token by "
                "token; with group-normalisation, the group is the baseline. Leave one of them out"
            ),
        ),
        (["method.shaping.overlong=filter"], f"overlong-filter (method.shaping.overlong) {ONE}"),
        (["method.shaping.cosine=true"], f"cosine-length (method.shaping.cosine) {ONE}"),
        (["method.dense.weight=1.0"], f"dense-rewards (method.dense.weight) {ONE}"),
        (["method.filter.prof=both"], f"prof-filter (method.filter.prof) {ONE}"),
        (["method.fire.enabled=true"], f"fire (method.fire.enabled) {ONE}"),
        (
            ["method.loss.positive_lm_coef=0.1"],
            f"positive-lm-loss (method.loss.positive_lm_coef) {ONE}",
        ),
        (
            ["method.advantage.length_adaptive_alpha=0.05"],
            f"length-adaptive-gae (method.advantage.length_adaptive_alpha) {ONE}",
        ),
        (["method.turns.mode=off"], 'normalise = "role" needs several turns'),
        (["method.turns.shaping=-1"], "method.turns.shaping"),
        (["method.turns.mode=twice"], "method.turns.mode"),
        (
            ["method.turns.mode=reconsider", "method.turns.first_reward=verification"],
            'first_reward = "accuracy" or "none"',
        ),
        (["ablate=critic"], "self-verification (method.turns.mode) needs a critic"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_in_a_line(
    repository: Path, overrides: list[str], message: str
) -> None:
    path = repository / "configs" / "pag.toml"
    with pytest.raises(ConfigError) as caught:
        configs.load(path, ["data=rows.jsonl", *overrides])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["data.selection.name=mopps"],
        ["method.filter.min_group_std=0.1"],
        ["method.dynamic_sampling.enabled=true"],
        ["method.replay.groups=8"],
        ["method.hints.enabled=true", "data.columns.solution=solution"],
        ["method.asynchrony.mode=bounded"],
        ["method.truncation.window=4", "method.critic.pretrain_steps=5"],
        ["method.turns.independent=false", "method.critic.pretrain_steps=5"],
    ],
)
def test_what_chooses_and_collects_goes_with_dialogues(
    repository: Path, overrides: list[str]
) -> None:
    config = configs.load(repository / "configs" / "pag.toml", ["data=rows.jsonl", *overrides])
    assert config.method.turns.on


def test_ablating_the_turns_leaves_ppo(repository: Path) -> None:
    path = repository / "configs" / "pag.toml"
    config = configs.load(path, ["data=rows.jsonl", "ablate=self-verification"])
    assert not config.method.turns.on
    assert config.method.advantage.normalise == "none"


@pytest.mark.parametrize(("answer", "trains"), [(r"^\d$", True), ("wrong", False)])
def test_a_dialogue_with_a_void_attempt_leaves_the_loss_as_a_whole(
    answer: str, trains: bool
) -> None:
    settings = {
        "advantage": {"estimator": "gae"},
        "turns": {"mode": "verify"},
        "filter": {"void": "text", "void_answer": answer},
    }
    config = configs.build({"method": settings}, origin="test")
    hooks = hooks_of(config)
    scored = scorer(hooks)([(dialogue("incorrect", "wrong", "correct"),)])
    batch = pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
    for hook in hooks:
        batch = hook.mark(batch, scored, Collected([], []))
    assert bool(batch["loss_mask"].any()) == trains
    assert not batch["rewards"].isnan().any(), "what it earned is known"


def going_on(turns: tuple[PolicyTurn, ...]) -> Unfinished:
    """A dialogue whose last turn, of two tokens, may be open."""
    end = turns[-1].end
    response = Response(tuple(range(4, 4 + end)), "", (-0.5,) * end, False, finished=False)
    return Unfinished(dialogue("correct").request, response, 0, turns)


def open_verification(first: str) -> Unfinished:
    attempt = dialogue(first).turns[0]
    return going_on((attempt, PolicyTurn(3, 5, "", False, "unparsed", finished=False)))


@pytest.mark.parametrize(
    ("settings", "rewards", "open_"),
    [
        ({}, (1.0, 0.0), (False, True)),
        ({"first_reward": "none"}, (0.0, 0.0), (False, True)),
        ({"first_reward": "verification"}, (0.0, 0.0), (True, True)),
        ({"reward": "final"}, (0.0, 0.0), (False, True)),
        ({"independent": False}, (1.0, 0.0), (False, True)),
    ],
)
def test_what_is_not_known_of_a_dialogue_that_goes_on_is_the_critics_to_say(
    settings: dict[str, Any], rewards: tuple[float, ...], open_: tuple[bool, ...]
) -> None:
    config = TurnsConfig(mode="verify", **settings)
    tokens, _ = turn_tokens(open_verification("correct"), config)
    assert tokens.trained == (True, True, False, True, True)
    assert (tokens.rewards[1], tokens.rewards[4]) == rewards
    assert (tokens.open[1], tokens.open[4]) == open_
    assert not any((tokens.open[0], *tokens.open[2:4]))
    assert tokens.roles == (1, 1, 0, 2, 2)


def test_between_two_turns_only_what_later_turns_change_is_open() -> None:
    attempt = going_on(dialogue("correct").turns)
    verified = going_on(dialogue("incorrect", "wrong").turns)
    for independent in (True, False):
        config = TurnsConfig(mode="verify", independent=independent)
        assert turn_tokens(attempt, config)[0].open == (False, not independent)
        tokens, _ = turn_tokens(verified, config)
        assert tokens.open == (False, False, False, False, not independent)
        assert tokens.rewards == (0.0, 0.0, 0.0, 0.0, 1.0)
    passed = TurnsConfig(mode="verify", first_reward="verification")
    assert turn_tokens(attempt, passed)[0].open == (False, True)
    tokens, _ = turn_tokens(verified, passed)
    assert not any(tokens.open)
    assert tokens.rewards == (0.0, 1.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("independent", [True, False])
def test_a_turn_after_a_fault_has_no_truth_before_it_ends(independent: bool) -> None:
    config = TurnsConfig(mode="verify", independent=independent)
    tokens, reward = turn_tokens(open_verification("fault"), config)
    assert not any(tokens.trained)
    assert not any(tokens.rewards)
    assert reward is None
