"""Rollouts by vLLM, on its CPU build, through TRL: what it answers after the weights have moved.

Two things of vLLM's CPU build stand in the way of TRL's weight sync, and are changed in here only:
the precision and the compilation that TRL leaves to vLLM's defaults, and linear weights that are
repacked when they are loaded, so that no later weights can be loaded over them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vllm_support import HERE, START_S

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not HERE, reason="vllm cannot be imported: see `make test-vllm`"),
    pytest.mark.timeout(2 * START_S),
]
TOLERANCE = 1e-3
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}


@pytest.mark.parametrize("kind", ["untied", "tied", "lora"])
def test_log_probabilities_are_the_trainer_s_after_every_sync(kind: str, tmp_path: Path) -> None:
    found = _scenario(kind, tmp_path)
    print(f"\n{kind}: largest difference of a log-probability: {found['max']}")
    assert max(found["max"]) < TOLERANCE
    assert found["alarms"] == [None, None, None]
    assert found["moved"]
    assert found["finished"] == list(range(12))
    assert found["kept"]


def test_a_head_that_stays_behind_raises_the_alarm(tmp_path: Path) -> None:
    """reload_weights leaves a tied head as it was; nothing but the log-probabilities tells."""
    found = _scenario("stale", tmp_path)
    print(f"\nstale: mean difference of a log-probability: {found['mean']}")
    assert found["alarms"][0] is None
    for alarm in found["alarms"][1:]:
        assert "stale weights" in alarm


def test_first_tokens_are_fire_s_and_the_rest_the_policy_s(tmp_path: Path) -> None:
    """By the log-probabilities: of FIRE's distribution for firsts, of the policy's for the rest."""
    found = _scenario("fire", tmp_path)
    print(f"\nfire: differences: firsts {found['firsts']}, the rest {found['max']}")
    assert max(found["firsts"]) < TOLERANCE
    assert max(found["max"]) < TOLERANCE
    assert found["distinct"] > 4, "of 36 first tokens after three prompts"
    assert found["moved"]


def _scenario(kind: str, folder: Path) -> dict[str, Any]:
    """Runs in a process of its own, since vLLM has one engine a process."""
    done = subprocess.run(
        [sys.executable, __file__, kind, str(folder)],
        capture_output=True, text=True, timeout=START_S, check=False,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def run(kind: str, folder: Path) -> dict[str, Any]:
    """Three rollouts, before each but the first of which all weights are moved."""
    import torch

    from assay.trainer.data.problems import Problem
    from assay.trainer.engines.drift import alarm
    from assay.trainer.engines.types import Draw, FirstToken, Request, Response
    from assay.trainer.engines.vllm import VllmGenerator, keep_base_weights
    from assay.trainer.methods.fire.settings import FireConfig
    from assay.trainer.settings.sections import RolloutConfig

    trainer, tokenizer = make_trainer(kind, folder)
    model: Any = trainer.model
    fire = FireConfig()
    if kind == "lora":
        keep_base_weights(trainer.vllm_generation)
    generator = VllmGenerator(
        lambda prompts, repeats: trainer._generate_single_turn(prompts, None, {}, repeats),
        tokenizer,
        RolloutConfig(backend="vllm", group_size=4, max_new_tokens=12, temperature=0.8, batch=8),
        end_ids=frozenset({tokenizer.eos_token_id}),
        engine=trainer.vllm_generation,
        first=FirstToken(fire.temperature, fire.top_k) if kind == "fire" else None,
    )  # fmt: skip
    requests = [
        Request(Draw(n, Problem(str(n), "", (), ""), tuple(tokenizer(text)["input_ids"])), index)
        for n, text in enumerate(("1+2=", "34+5=", "What is 6?"))
        for index in range(4)
    ]
    noise = torch.Generator().manual_seed(0)
    found: dict[str, Any] = {"max": [], "mean": [], "alarms": [], "firsts": [], "kept": True}
    answers = []
    for step in range(3):
        if step:
            move(model, noise)
            trainer.state.global_step += 1
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        finished: list[int] = []

        def on_finished(place: int, _response: Response, seen: list[int] = finished) -> None:
            seen.append(place)

        responses = generator.generate(requests, on_finished)
        report = compare(model, requests, responses, temperature=0.8, fired=kind == "fire")
        found["firsts"].append(firsts(model, requests, responses))
        found["max"].append(report.max_abs)
        found["mean"].append(report.mean_abs)
        found["alarms"].append(alarm(report, 0.1))
        found["finished"] = finished
        found["kept"] &= all(torch.equal(p, before[n]) for n, p in model.named_parameters())
        answers.append([response.ids for response in responses])
    found["distinct"] = len({ids[0] for step in answers for ids in step})
    found["moved"] = answers[0] != answers[1] != answers[2]
    return found


def move(model: Any, noise: Any) -> None:
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=noise))


def firsts(model: Any, requests: Any, responses: Any) -> float:
    """The largest difference of a first token's log-probability to FIRE's distribution."""
    from assay.trainer.algos.sampling import fire_first_token_probs
    from rollouts_support import direct_logps

    worst = 0.0
    for request, response in zip(requests, responses, strict=True):
        logps_V = direct_logps(model, request, response.ids)[0]
        probs_V = fire_first_token_probs(logps_V[None], temperature=30.0, top_k=16)[0]
        worst = max(worst, abs(float(probs_V[response.ids[0]].log()) - response.logprobs[0]))
    return worst


def compare(
    model: Any, requests: Any, responses: Any, *, temperature: float, fired: bool = False
) -> Any:
    """What the policy itself makes of each response, in a pass of its own; not of FIRE's tokens."""
    import torch

    from assay.trainer.engines.drift import DriftReport, drift
    from rollouts_support import direct_logps

    report = DriftReport()
    for request, response in zip(requests, responses, strict=True):
        direct_TV = direct_logps(model, request, response.ids, temperature=temperature)
        direct_T = direct_TV[range(len(response.ids)), response.ids]
        counted_T = torch.ones(len(response.ids), dtype=torch.bool)
        counted_T[0] = not fired
        report += drift(direct_T[None], torch.tensor([response.logprobs]), counted_T[None])
    return report


def make_trainer(kind: str, folder: Path) -> tuple[Any, Any]:
    """A GRPOTrainer of TRL with a random model and vLLM beside it."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, LlamaConfig
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from trainer_support import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
        tie_word_embeddings=kind in ("tied", "stale"), initializer_range=0.2, bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    load: Any = AutoModelForCausalLM.from_config
    load(settings).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    fit_cpu(reload=kind == "stale")

    def nothing(completions: list[Any], **_: Any) -> list[float | None]:
        return [0.0] * len(completions)

    lora = LoraConfig(r=4, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    trainer = GRPOTrainer(
        model=str(folder / "model"),
        reward_funcs=nothing,
        args=GRPOConfig(
            output_dir=str(folder / "run"), use_cpu=True, bf16=False, gradient_checkpointing=False,
            report_to="none", per_device_train_batch_size=8, num_generations=4,
            use_vllm=True, vllm_mode="colocate", vllm_max_model_length=128, temperature=0.8,
            max_completion_length=12, model_init_kwargs={"dtype": "float32"},
        ),
        train_dataset=Dataset.from_list([{"prompt": "1+1="}] * 8),
        processing_class=tokenizer,
        peft_config=lora if kind == "lora" else None,
    )  # fmt: skip
    return trainer, tokenizer


def fit_cpu(*, reload: bool) -> None:
    """Makes TRL's colocate mode run on vLLM's CPU build.

    Args:
        reload: sync by vLLM's `reload_weights`, which repacks the weights anew, instead of keeping
            them as they are loaded.
    """
    from functools import partial

    from torch.nn.functional import linear
    from trl.generation import vllm_generation
    from vllm.model_executor.layers import utils

    trl: Any = vllm_generation
    trl.LLM = partial(trl.LLM, dtype="float32", enforce_eager=True)
    if reload:
        trl.VLLMGeneration.sync_weights = _reload_weights
        return

    def unpacked(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = linear

    utils.dispatch_cpu_unquantized_gemm = unpacked


def _reload_weights(generation: Any) -> None:
    runner = generation.llm.llm_engine.model_executor.driver_worker.model_runner
    runner.reload_weights(weights_iterator=generation._iter_named_params())
    generation.llm.reset_prefix_cache()


if __name__ == "__main__":
    where = Path(sys.argv[2])
    (where / "found.json").write_text(json.dumps(run(sys.argv[1], where)))
