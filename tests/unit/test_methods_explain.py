"""`--explain`: what is said of each preset, and how it looks."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from assay.trainer.explain.explanation import Explanation, explain
from assay.trainer.explain.presets import published
from assay.trainer.explain.show import show
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import part_names, parts_on
from presets_said import SAID

GIVEN = ["data=rows.jsonl", "model=org/model"]


def preset(repository: Path, name: str, *overrides: str) -> Config:
    return configs.load(repository / "configs" / f"{name}.toml", [*GIVEN, *overrides])


def lines_of(explanation: Explanation, title: str) -> list[str]:
    found = [section.lines for section in explanation.sections if section.title == title]
    assert len(found) <= 1
    return [line.strip() for line in found[0]] if found else []


def printed(explanation: Explanation, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(explanation, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("overrides", "turns", "rewards"),
    [
        (
            (),
            "attempt, verification, revision; each of at most 2,048 tokens",
            ["first attempt: acc_1", "second attempt: acc_2 + 1 * (acc_2 - acc_1)"],
        ),
        (
            ("ablate=selective-revision,verifier-reward,turn-shaping",),
            "revision: always; verdicts are read in strict parsing",
            ["verification: 0", "second attempt: acc_2"],
        ),
        (
            ("ablate=turn-rewards",),
            "what asks for a turn is in no loss and in no count",
            ["R = acc of the last attempt, at the end of the last turn; the others earn 0"],
        ),
    ],
)
def test_turns_are_told(
    repository: Path, overrides: tuple[str, ...], turns: str, rewards: list[str]
) -> None:
    explanation = explain(preset(repository, "pag", *overrides))
    assert turns in lines_of(explanation, "Turns")
    assert set(rewards) <= set(lines_of(explanation, "Reward"))
    assert not lines_of(explain(preset(repository, "ppo")), "Turns")


def test_every_preset_is_explained_here() -> None:
    assert set(SAID) == set(published())


@pytest.mark.parametrize("name", published())
def test_what_is_said_of_a_preset(repository: Path, name: str) -> None:
    config = preset(repository, name)
    explanation = explain(config)
    sampling, advantage, objective, optimiser = SAID[name]
    assert lines_of(explanation, "Sampling")[0] == sampling
    assert lines_of(explanation, "Advantage") == advantage
    assert lines_of(explanation, "Objective") == objective
    assert f"each rollout: {optimiser}" in lines_of(explanation, "Optimiser")
    assert (explanation.off, explanation.missing, explanation.added) == ((), (), ())
    assert bool(lines_of(explanation, "Critic")) == config.method.has_critic


@pytest.mark.parametrize("name", published())
def test_it_is_readable_at_100_columns_and_the_same_every_time(repository: Path, name: str) -> None:
    config = preset(repository, name)
    text = printed(explain(config))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert text == printed(explain(config))
    assert text == printed(explain(config), width=180), "a wide terminal shows the same"
    joined = " ".join(text.split())
    for part in parts_on(config):
        assert f"  {part.name} " in text
        assert part.reference.split(",")[0] in joined
    narrow = printed(explain(config), width=60)
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= 60


def test_the_reward_of_dapo(repository: Path) -> None:
    assert lines_of(explain(preset(repository, "dapo")), "Reward")[:3] == [
        "R = J + O(L)",
        "J: what is given by the verifier math-signed",
        "O(L): 0 up to L = 16,384 tokens, then falling to -1 at 20,480",
    ]


def test_what_leaves_a_batch_is_told(repository: Path) -> None:
    void = (
        "a response that has neither a block of code nor an answer that \\\\boxed\\{ finds leaves "
    )
    recomposed = (
        "of each prompt the shortest 50% of the correct responses and the longest 50% of the "
        "others train at once; 40% to 25% of a batch, over 100 steps, is the remainders of "
    )
    explanation = explain(
        preset(
            repository, "grpo", "method.filter.void=text",
            "method.recomposition.groups=512", "method.recomposition.first=0.4",
            "method.advantage.difficulty=linear",
        )
    )  # fmt: skip
    said = lines_of(explanation, "Sampling")
    assert any(line.startswith(void) for line in said)
    assert any(line.startswith(recomposed) for line in said)
    assert lines_of(explanation, "Advantage")[1].startswith("times 1 + (1 - s), with s = ")


def test_the_critic_of_vapo(repository: Path) -> None:
    said = lines_of(explain(preset(repository, "vapo")), "Critic")
    assert said[1] == "target = A(lambda 1) + V, which is the sum of the rewards to come"
    assert said[3].startswith("pre-trained on the fixed policy for at most 50 steps")
    biased = lines_of(explain(preset(repository, "ppo")), "Critic")
    assert biased[1] == "target = A(lambda 0.95) + V"
    assert not any("pre-trained" in line for line in biased)


def test_truncation_is_told(repository: Path) -> None:
    explanation = explain(preset(repository, "t_ppo"))
    said = " ".join(lines_of(explanation, "Sampling"))
    assert "in 8,192 slots, each of which draws at most 8,192 tokens a step" in said
    learns = "learns from the responses that ended in this step, all of their tokens"
    assert f"{learns}; from nothing where fewer than 512 did" in lines_of(explanation, "Critic")
    whole = explain(preset(repository, "t_ppo", "ablate=truncation"))
    assert "slots" not in " ".join(lines_of(whole, "Sampling"))
    assert learns not in " ".join(lines_of(whole, "Critic"))


def test_asynchrony_is_told(repository: Path) -> None:
    ahead = explain(preset(repository, "areal"))
    said = lines_of(ahead, "Sampling")
    assert said[-1] == (
        "drawn beside the training, by weights at most 8 steps old: rollout n begins when "
        "floor((n - 1) / 8,192) <= steps made + 8"
    )
    naive = explain(preset(repository, "areal", "ablate=decoupled-ppo"))
    assert lines_of(naive, "Objective")[-1] == "pi_old: the weights that drew the response"
    whole = explain(preset(repository, "areal", "ablate=asynchronous-rollouts"))
    assert "beside" not in " ".join(lines_of(whole, "Sampling"))
    assert "pi_old: " not in " ".join(lines_of(whole, "Objective"))
    periodic = ("method.asynchrony.mode=periodic", "optim.micro_batch=64")
    said = lines_of(explain(preset(repository, "grpo", *periodic)), "Sampling")
    assert said[-1].startswith("drawn and judged beside the training on the micro-batches")


def test_dynamic_sampling_is_told(repository: Path) -> None:
    said = " ".join(lines_of(explain(preset(repository, "dapo")), "Sampling"))
    assert "judged by the verdict, not by the shaped reward" in said
    assert "at most 10 rounds; surplus groups are dropped" in said
    kept = explain(preset(repository, "dapo", "method.dynamic_sampling.keep_surplus=true"))
    assert "surplus groups open the next step" in " ".join(lines_of(kept, "Sampling"))


def test_a_part_that_is_switched_off_is_told(repository: Path) -> None:
    config = preset(repository, "dapo", "ablate=clip-higher", "method.loss.kl_coef=0.1")
    explanation = explain(config)
    assert explanation.off == (part_names()["clip-higher"],)
    assert (explanation.missing, explanation.added) == ((), ("kl",))
    text = printed(explanation)
    assert "Switched off by ablate" in text
    assert "Not dapo as published: with kl." in text
    assert "clip(r, 0.8, 1.2)" in text
    other = explain(preset(repository, "dapo", "method.loss.clip_high=0.2"))
    assert other.missing == ("clip-higher",)
    assert "Not dapo as published: without clip-higher." in printed(other)


@pytest.mark.parametrize(
    ("overrides", "title", "line"),
    [
        (["method.loss.entropy_coef=0.01"], "Objective", "+ 0.01 * entropy of pi"),
        (
            ["method.loss.importance_correction=token-truncate"],
            "Objective",
            "w = min(pi_old / sampler's probability, 2): token-truncate",
        ),
        (
            ["method.loss.pre_clip=1000"],
            "Objective",
            "r = pi / pi_old of the token, first clamped into [1 / 1000, 1000]",
        ),
        (
            ["method.advantage.max_sigma=3"],
            "Advantage",
            "0 where it is more than 3 deviations from the mean",
        ),
        (
            ["method.advantage.normalise=task"],
            "Advantage",
            "then whitened over the tokens of each task by itself: mean 0, deviation 1",
        ),
        (["method.shaping.cosine=true"], "Reward", "R = C(L) + O(L)"),
        (
            ["method.shaping.overlong=filter"],
            "Reward",
            "responses cut at 20,480 tokens leave the loss",
        ),
        (["method.shaping.repetition_ngram=20"], "Reward", "R = J + O(L) + rep"),
        (
            ["method.dense.weight=0.5", "method.dense.normalise=false"],
            "Reward",
            "r_t: 0.5 * the reward of each span (step, line, turn) that ends at token t",
        ),
        (
            [
                "method.advantage.estimator=gae",
                "method.loss.kl_coef=0.1",
                "method.loss.kl_place=reward",
            ],
            "Reward",
            "each token's reward less 0.1 * log(pi / pi_ref)",
        ),
        (
            ["method.replay.groups=8", "method.replay.mode=success"],
            "Sampling",
            (
                "a group in which nobody was right takes an earlier success of its problem, with "
                "the probabilities that it was sampled under; those of the latest 8 problems are "
                "kept"
            ),
        ),
        (
            ["method.loss.kl_coef_by_task={chat=0.1}"],
            "Objective",
            "- (0.1 where the task is chat, else 0) * pi / pi_old * k3(pi, pi_ref)",
        ),
        (
            ["method.advantage.estimator=gae", "method.critic.loss=hl-gauss"],
            "Critic",
            "loss: cross-entropy with a Gaussian around the target, 51 bins",
        ),
        (
            ["method.advantage.estimator=gae", "method.critic.sharing=trunk"],
            "Critic",
            "a head on the policy's hidden states, weight 0.5 in the loss",
        ),
    ],
)
def test_what_other_parts_add(
    repository: Path, overrides: list[str], title: str, line: str
) -> None:
    assert line in lines_of(explain(preset(repository, "dapo", *overrides)), title)
