"""Where a critic's weights come from, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import critic_support as support
from assay.kit.errors import ConfigError
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.settings.objective import CriticConfig
from genrm_engine_support import Worker
from genrm_support import make_model

SCALAR = CriticConfig()
HISTOGRAM = CriticConfig(loss="hl-gauss", bins=11)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, and what critics start from."""
    root = tmp_path_factory.mktemp("models")
    make_model(root / "policy", "causal", hidden=32)
    make_model(root / "reward", "scalar", hidden=32, seed=1)
    make_model(root / "steps", "step", hidden=32, seed=2)
    make_model(root / "step", "step", hidden=32, seed=3, labels=1)
    make_model(root / "other", "causal", hidden=32, seed=4)
    make_model(root / "classes", "step", hidden=32, seed=5, labels=11)
    shape = json.loads((root / "classes" / "config.json").read_text())
    shape["assay_step_output"] = "score"
    (root / "classes" / "config.json").write_text(json.dumps(shape))
    return root


@pytest.fixture(scope="module")
def policy(folder: Path) -> LoadedPolicy:
    return support.read_policy(folder / "policy")


def load(init: Any, policy: LoadedPolicy, **settings: Any) -> tuple[Any, list[str]]:
    said: list[str] = []
    return load_critic(CriticConfig(init=str(init), **settings), policy, said.append), said


def extended(batch: Any) -> Any:
    """One token more at the end of each response: its value has seen the whole response."""
    rows = torch.arange(len(batch["completion_ids"]))
    longer = {
        **batch,
        **{
            key: torch.nn.functional.pad(batch[key], (0, 1))
            for key in ("completion_ids", "completion_mask")
        },
    }
    ends = batch["completion_mask"].sum(dim=1)
    longer["completion_ids"][rows, ends] = 17
    longer["completion_mask"][rows, ends] = 1
    return longer


def whole_dialogue_values(model: Any, batch: Any) -> torch.Tensor:
    critic = Critic(model, SCALAR, support.accelerator())
    longer = extended(batch)
    values_BT = critic.values(longer, support.passes(longer, 8))
    return values_BT[torch.arange(len(values_BT)), batch["completion_mask"].sum(dim=1)]


def test_of_the_policy_the_backbone_is_copied(policy: LoadedPolicy) -> None:
    model, _ = load("policy", policy)
    for copied, own in zip(
        model.base_model.parameters(), policy.model.base_model.parameters(), strict=True
    ):
        assert torch.equal(copied, own)
        assert copied.data_ptr() != own.data_ptr()
    assert model.score.out_features == 1
    assert not model.score.weight.any()
    assert policy.model.config.num_labels != 1
    assert policy.model.config.use_cache


def test_all_weights_are_trained_and_nothing_is_dropped_out(policy: LoadedPolicy) -> None:
    frozen = LoadedPolicy(policy.model, policy.tokenizer)
    policy.model.requires_grad_(False)
    try:
        model, _ = load("policy", frozen)
    finally:
        policy.model.requires_grad_(True)
    assert all(w.requires_grad for w in model.parameters())
    assert all(m.p == 0 for m in model.modules() if isinstance(m, torch.nn.Dropout))


def test_gradient_checkpointing_gives_the_same_gradient(policy: LoadedPolicy) -> None:
    gradients = []
    for checkpointing in (False, True):
        model = load_critic(SCALAR, policy, print, gradient_checkpointing=checkpointing)
        assert model.is_gradient_checkpointing == checkpointing
        torch.nn.init.ones_(model.score.weight)
        critic = Critic(model, SCALAR, support.accelerator())
        batch = support.batch_of()
        mask_BT = batch["completion_mask"]
        targets_BT = support.targets_of(batch)
        critic.backward(batch, targets_BT, targets_BT, mask_BT, tokens=mask_BT.sum())
        gradients.append([w.grad for w in critic.model.parameters()])
    for left, right in zip(*gradients, strict=True):
        torch.testing.assert_close(left, right)


def test_a_reward_model_gives_the_score_of_the_whole_dialogue(
    folder: Path, policy: LoadedPolicy
) -> None:
    """The state after the last token is the dialogue that a reward model scores."""
    from transformers import AutoModelForSequenceClassification

    batch = support.batch_of()
    model, _ = load(folder / "reward", policy)
    reward: Any = AutoModelForSequenceClassification.from_pretrained(folder / "reward")
    scores = []
    for row in range(8):  # each dialogue by itself, without padding
        here = support.take(batch, slice(row, row + 1))
        ids = torch.cat(
            [here[f"{p}_ids"][here[f"{p}_mask"].bool()] for p in ("prompt", "completion")]
        )
        with torch.no_grad():
            scores.append(reward(input_ids=ids[None]).logits[0, 0])
    torch.testing.assert_close(
        whole_dialogue_values(model, batch), torch.stack(scores), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", ["step", "steps"])
def test_a_process_reward_model_gives_its_margin_at_every_token(
    folder: Path, policy: LoadedPolicy, name: str
) -> None:
    from transformers import AutoModelForTokenClassification

    batch = support.batch_of()
    process: Any = AutoModelForTokenClassification.from_pretrained(folder / name).eval()
    with torch.no_grad():  # a bias of its own, which must come along
        process.score.bias.uniform_(-1, 1)
    process.save_pretrained(folder / f"{name}-biased")
    model, _ = load(folder / f"{name}-biased", policy)
    values_BT = Critic(model, SCALAR, support.accelerator()).values(batch, support.passes(batch, 8))
    ids, mask = (
        torch.cat([batch[f"prompt_{x}"], batch[f"completion_{x}"]], dim=1) for x in ("ids", "mask")
    )
    with torch.no_grad():
        logits = process(input_ids=ids, attention_mask=mask).logits[:, 3:-1]
    margin = logits[..., 0] if name == "step" else logits[..., 1] - logits[..., 0]
    kept = batch["completion_mask"].bool()
    torch.testing.assert_close(values_BT[kept], margin[kept], rtol=1e-4, atol=1e-5)


def test_from_a_prm_that_regresses_the_values_are_its_scores_at_the_ends_of_lines(
    folder: Path, policy: LoadedPolicy
) -> None:
    """What genrm serves for a line is what the critic says before the token behind that line."""
    scores = Worker(folder / "step", "step", step_scores=True)
    batch = support.batch_of(rows=4, prompt=4, length=9)
    ends = [1, 4, 7]  # of lines, in a response that goes on behind the last of them
    jobs, kept = [], batch["completion_mask"].bool()
    rows = [n for n in range(4) if batch["completion_mask"][n, ends[-1] + 1]]
    for row in rows:
        prompt = batch["prompt_ids"][row][batch["prompt_mask"][row].bool()].tolist()
        ids = prompt + batch["completion_ids"][row][kept[row]].tolist()
        jobs.append(
            {"kind": "rate-steps", "ids": ids, "positions": [len(prompt) + e for e in ends]}
        )
    model, _ = load(folder / "step", policy)
    values_BT = Critic(model, SCALAR, support.accelerator()).values(batch, support.passes(batch, 8))
    served = torch.tensor([answer["probabilities"] for answer in scores.ask(jobs)])
    found = values_BT[rows][:, [end + 1 for end in ends]]
    assert found.abs().max() > 0.1
    torch.testing.assert_close(found.clamp(-1, 1), 2 * served - 1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["reward", "steps"])
def test_classes_of_returns_take_the_backbone_and_say_so(
    folder: Path, policy: LoadedPolicy, name: str
) -> None:
    model, said = load(folder / name, policy, loss="hl-gauss", bins=11)
    assert model.score.out_features == 11
    assert not model.score.weight.any()
    assert "head starts from zeros" in said[-1]


def test_classes_of_scores_start_a_critic_of_as_many_classes(
    folder: Path, policy: LoadedPolicy
) -> None:
    """What a PRM of classes says behind a line is the critic's value there (arXiv 2403.03950)."""
    settings = {"loss": "hl-gauss", "bins": 11}
    model, said = load(folder / "classes", policy, **settings)
    assert model.score.weight.any()
    assert not any("zeros" in line for line in said)
    scores = Worker(folder / "classes", "step", step_scores=True)
    batch = support.batch_of(rows=1, prompt=4, length=9)
    prompt = batch["prompt_ids"][0][batch["prompt_mask"][0].bool()].tolist()
    ids = prompt + batch["completion_ids"][0][batch["completion_mask"][0].bool()].tolist()
    (answer,) = scores.ask(
        [{"kind": "rate-steps", "ids": ids, "positions": [len(prompt), len(prompt) + 1]}]
    )
    config = CriticConfig(init=str(folder / "classes"), **settings)  # type: ignore[arg-type]
    values_BT = Critic(model, config, support.accelerator()).values(batch, support.passes(batch, 8))
    served = 2 * torch.tensor(answer["probabilities"]) - 1
    assert served.abs().max() > 0.01
    torch.testing.assert_close(values_BT[0, 1:3], served, rtol=1e-4, atol=1e-5)
    for other in ({"bins": 13}, {"value_max": 2.0}):  # other classes: the head begins anew
        anew, said = load(folder / "classes", policy, **{**settings, **other})
        assert not anew.score.weight.any()
        assert "head starts from zeros" in said[-1]


def test_a_causal_model_gives_its_backbone(folder: Path, policy: LoadedPolicy) -> None:
    model, _ = load(folder / "other", policy)
    other = support.read_policy(folder / "other").model.base_model
    assert torch.equal(next(model.base_model.parameters()), next(other.parameters()))
    assert not model.score.weight.any()


@pytest.mark.parametrize("config", [SCALAR, HISTOGRAM])
def test_a_saved_critic_comes_back(
    tmp_path: Path, policy: LoadedPolicy, config: CriticConfig
) -> None:
    model = load_critic(config, policy, print)
    torch.nn.init.normal_(model.score.weight)
    critic = Critic(model, config, support.accelerator(), tokenizer=policy.tokenizer)
    critic.save_pretrained(tmp_path / "critic")
    settings = {"loss": config.loss, "bins": config.bins}
    again, _ = load(tmp_path / "critic", policy, **settings)
    batch = support.batch_of()
    found = Critic(again, config, support.accelerator()).values(batch, support.passes(batch, 8))
    assert torch.equal(found, critic.values(batch, support.passes(batch, 8)))
    assert (tmp_path / "critic" / "tokenizer.json").is_file()
    for key, value in {"bins": 12, "value_max": 2.0, "loss": "mse"}.items():
        if config is HISTOGRAM:
            with pytest.raises(ConfigError, match=r"critic .* has values of 11 bins .*reads"):
                load(tmp_path / "critic", policy, **{**settings, key: value})


def test_a_damaged_record_is_named(tmp_path: Path, folder: Path, policy: LoadedPolicy) -> None:
    shutil.copytree(folder / "step", tmp_path / "critic")
    (tmp_path / "critic" / "value.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"value.json cannot be read"):
        load(tmp_path / "critic", policy)


def test_another_vocabulary_is_refused(tmp_path: Path, folder: Path, policy: LoadedPolicy) -> None:
    shutil.copytree(folder / "reward", tmp_path / "renamed")
    path = tmp_path / "renamed" / "tokenizer.json"
    tokens = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = tokens["model"]["vocab"]
    vocabulary["!"], vocabulary["#"] = vocabulary["#"], vocabulary["!"]
    path.write_text(json.dumps(tokens), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"another vocabulary than the policy: 2 tokens differ"):
        load(tmp_path / "renamed", policy)


def test_a_smaller_vocabulary_is_refused_even_without_a_tokenizer(
    tmp_path: Path, policy: LoadedPolicy
) -> None:
    from transformers import LlamaConfig, LlamaForSequenceClassification

    shape = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=1, num_labels=1,
    )  # fmt: skip
    LlamaForSequenceClassification(shape).save_pretrained(tmp_path / "small")
    with pytest.raises(ConfigError, match=r"knows 64 tokens, and the policy writes"):
        load(tmp_path / "small", policy)


def test_too_many_outputs_are_refused(tmp_path: Path, policy: LoadedPolicy) -> None:
    make_model(tmp_path / "three", "scalar", hidden=32, labels=3)
    with pytest.raises(ConfigError, match=r"has 3 outputs; a reward model has one"):
        load(tmp_path / "three", policy)


def test_what_cannot_be_loaded_is_one_line(
    tmp_path: Path, folder: Path, policy: LoadedPolicy
) -> None:
    with pytest.raises(ConfigError, match=r"method.critic.init: model folder .* does not exist"):
        load(tmp_path / "nothing", policy)
    shutil.copytree(folder / "reward", tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ConfigError, match=r"method.critic.init = .* cannot be loaded") as raised:
        load(tmp_path / "cut", policy)
    assert "\n" not in str(raised.value)


def test_a_model_type_without_token_classifier_is_refused(policy: LoadedPolicy) -> None:
    from transformers import MambaConfig, MambaForCausalLM

    shape = MambaConfig(vocab_size=600, hidden_size=16, num_hidden_layers=1, state_size=4)
    mamba = LoadedPolicy(MambaForCausalLM(shape), policy.tokenizer)
    with pytest.raises(ConfigError, match=r"no token classifier of model type 'mamba'.*trunk"):
        load("policy", mamba)


def test_of_a_policy_with_adapters_the_weights_beneath_are_copied(folder: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT is not installed")
    plain = support.read_policy(folder / "policy")
    settings = peft.LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = LoadedPolicy(
        peft.get_peft_model(support.read_policy(folder / "policy").model, settings),
        plain.tokenizer,
    )
    model, _ = load("policy", adapted)
    own = dict(plain.model.base_model.named_parameters())
    copied = dict(model.base_model.named_parameters())
    assert own.keys() == copied.keys()
    assert all(torch.equal(own[name], copied[name]) for name in own)
    assert all(w.requires_grad for w in model.parameters())
    assert any("lora" in name for name, _ in adapted.model.named_parameters())
