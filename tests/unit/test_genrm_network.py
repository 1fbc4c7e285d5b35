"""Architectures other than the plain one: windows, encoders, Qwen's process reward model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from genrm_engine_support import Worker
from genrm_support import make_tokenizer

GROUP = [(*(5 + (3 * n + k) % 250 for n in range(40)), 9, 10 + k) for k in range(3)]
GROUP += [(*GROUP[0][:30], 7, 8), (11, 12, 13)]


def save(model: Any, folder: Path) -> Path:
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(
                    parameter, std=0.2, generator=torch.Generator().manual_seed(0)
                )
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def sizes(**others: Any) -> dict[str, Any]:
    return {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        **others,
    }


def check_choices(folder: Path) -> Worker:
    """Probabilities and greedy text of a group equal those of the model alone."""
    import torch
    from transformers import AutoModelForCausalLM

    alone = AutoModelForCausalLM.from_pretrained(folder).eval()
    worker = Worker(folder, "generative")
    jobs = [{"kind": "choose", "ids": ids, "options": [[20], [21, 22]]} for ids in GROUP]
    for ids, answer in zip(GROUP, worker.ask(jobs), strict=True):
        with torch.inference_mode():
            logprobs = alone(input_ids=torch.tensor([[*ids, 21]])).logits[0].log_softmax(-1)
        last = len(ids) - 1
        want = [float(logprobs[last, 20]), float(logprobs[last, 21] + logprobs[last + 1, 22])]
        assert answer["logprobs"] == pytest.approx(want, abs=2e-5)
    return worker


def check_greedy(worker: Worker, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    alone = AutoModelForCausalLM.from_pretrained(folder).eval()
    plain = {"max_tokens": 12, "temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ()}
    jobs = [{"kind": "write", "ids": ids, **plain} for ids in GROUP]
    for ids, answer in zip(GROUP, worker.ask(jobs), strict=True):
        written: list[int] = []
        while len(written) < 12 and 2 not in written:
            with torch.inference_mode():
                logits = alone(input_ids=torch.tensor([[*ids, *written]])).logits
            written.append(int(logits[0, -1].argmax()))
        assert answer["completion"] == len(written)
        assert answer["text"] == worker.encoder.decode(written, ids)


def test_layers_that_look_back_a_little_way(tmp_path: Path) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(**sizes(sliding_window=8))
    folder = save(MistralForCausalLM(config), tmp_path / "mistral")
    worker = check_choices(folder)
    assert worker.network.shape is not None
    check_greedy(worker, folder)


def test_two_kinds_of_layers(tmp_path: Path) -> None:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(**sizes(sliding_window=8, query_pre_attn_scalar=16))
    folder = save(Gemma2ForCausalLM(config), tmp_path / "gemma")
    worker = check_choices(folder)
    assert worker.network.shape is not None
    check_greedy(worker, folder)


def test_state_space_layers_keep_nothing_and_choose_all_the_same(tmp_path: Path) -> None:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=400, hidden_size=32, state_size=4, num_hidden_layers=2, pad_token_id=0,
        bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    folder = save(MambaForCausalLM(config), tmp_path / "mamba")
    worker = check_choices(folder)
    assert worker.network.shape is None


@pytest.mark.parametrize("head", ["scalar", "step"])
def test_an_encoder(tmp_path: Path, head: str) -> None:
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertForTokenClassification,
    )

    kind = BertForSequenceClassification if head == "scalar" else BertForTokenClassification
    small = {key: value for key, value in sizes().items() if "key_value" not in key}
    model = kind(BertConfig(**{**small, "num_labels": 2 if head == "step" else 1})).eval()
    worker = Worker(save(model, tmp_path / "bert"), head)
    assert worker.network.shape is None
    if head == "scalar":
        answers = worker.ask([{"kind": "rate", "ids": ids} for ids in GROUP])
    else:
        answers = worker.ask(
            [{"kind": "rate-steps", "ids": ids, "positions": [1, 2]} for ids in GROUP]
        )
    for ids, answer in zip(GROUP, answers, strict=True):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        if head == "scalar":
            assert answer["logits"] == pytest.approx(logits.tolist(), abs=1e-5)
        else:
            want = logits.softmax(-1)[[1, 2], 1].tolist()
            assert answer["probabilities"] == pytest.approx(want, abs=1e-5)


def test_qwens_process_reward_model_needs_no_code_of_others(tmp_path: Path) -> None:
    import torch
    from transformers import Qwen2Config

    from assay.genrm.engines.worker.qwen import Qwen2ForProcessRewardModel

    config = Qwen2Config(**sizes(num_labels=2))
    model = Qwen2ForProcessRewardModel(config).eval()
    folder = save(model, tmp_path / "qwen")
    assert '"Qwen2ForProcessRewardModel"' in (folder / "config.json").read_text(encoding="utf-8")
    worker = Worker(folder, "step")
    assert worker.network.shape is not None
    jobs = [{"kind": "rate-steps", "ids": ids, "positions": [1, len(ids) - 1]} for ids in GROUP]
    for ids, answer in zip(GROUP, worker.ask(jobs), strict=True):
        with torch.inference_mode():
            trunk = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            hidden = torch.relu(trunk @ model.score[0].weight.T + model.score[0].bias)
            logits = hidden @ model.score[2].weight.T + model.score[2].bias
        want = logits.softmax(-1)[[1, -1], 1].tolist()
        assert answer["probabilities"] == pytest.approx(want, abs=1e-5)
