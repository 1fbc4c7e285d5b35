"""Two processes give the curve of one: DDP, and FSDP2 with every weight sharded.

Launched as a user would: by torchrun, or by accelerate with the shipped preset. On CPUs, over gloo.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer_processes_support import BIN, FSDP2, SUPPORT, Job, do, rows, same, write

MakeConfig = Callable[..., Any]
LAUNCHERS = {
    "ddp": [BIN / "torchrun", "--nproc-per-node", "2"],
    "fsdp2": [
        *(BIN / "accelerate", "launch", "--config_file", FSDP2),
        *("--num_processes", "2", "--main_process_port", "0"),
    ],
}

AGAIN = Path(__file__).with_name("environment_again.py")
GAE = {"estimator": "gae", "lam": 0.95}
DAPO = {
    "loss": {"clip_high": 0.28},
    "dynamic_sampling": {"enabled": True, "keep_surplus": True},
    "shaping": {"overlong": "soft", "overlong_cache": 2},
}
FAULTY = ("grpo", "episodes-faults", "noise")
METHODS: dict[str, dict[str, Any]] = {
    "grpo": {
        "method": {"loss": {"kl_coef": 0.05, "aggregation": "seq-mean-token-mean"}},
        "optim": {"micro_batch": 8},
        "reward": {"max_fault_ratio": 1.0},
    },
    "dapo": {"method": DAPO, "optim": {"mini_batches": 2, "micro_batch_tokens": 60}},
    "ppo": {
        "method": {
            "advantage": GAE,
            "critic": {"loss": "clipped", "learning_rate": 1e-3},
            "loss": {"kl_coef": 0.05, "kl_place": "reward", "kl_estimator": "k1"},
        },
        # both processes make as many passes, whatever each would need by itself
        "optim": {"mini_batches": 2, "epochs": 2, "micro_batch_tokens": 60},
    },
    "vapo": {
        "method": {
            "advantage": {"estimator": "gae", "length_adaptive_alpha": 0.05, "normalise": "batch"},
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 2},
            "loss": {"positive_lm_coef": 0.1, "clip_high": 0.28},
        },
    },
    "t_ppo": {
        "method": {
            "advantage": GAE,
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 1},
            "truncation": {"window": 1},
        },
        "optim": {"micro_batch": 8},
    },
    "dialogues": {  # within a turn and between two, a step ends
        "method": {
            "advantage": {**GAE, "normalise": "role"},
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 1},
            "turns": {"mode": "verify"},
            "truncation": {"window": 3},
        },
        "optim": {"micro_batch": 8},
    },
    "episodes": {
        "method": {"episodes": {"environment": f"{AGAIN}:Retelling", "format": "tagged"}},
        "optim": {"micro_batch": 8},
    },
    "episodes-faults": {  # whole groups of the first process, single samples of the second
        "method": {
            "episodes": {"environment": f"{AGAIN}:Again", "format": "tagged"},
            "dynamic_sampling": {"enabled": True, "keep_surplus": True},
        },
        "reward": {"max_fault_ratio": 1.0},
        "optim": {"micro_batch": 8},
    },
    "pairwise": {
        "method": {
            "advantage": GAE,
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 1},
            "pairwise": {"against": "anchor", "anchors": "best-of-n", "n": 3, "selector": "exact"},
        },
        "optim": {"micro_batch": 8},
    },
    "in-pairs": {
        "method": {
            "advantage": {"estimator": "symmetric", "scale": "none"},
            "pairwise": {"against": "group", "anchors": "reference"},
        },
    },
    "hints": {  # a survey each step, groups answered again, successes replayed
        "data": {
            "columns": {"solution": "answer"},
            "selection": {"name": "vas", "vas": {"refresh_every": 1, "samples": 2}},
        },
        "method": {
            "hints": {"enabled": True},
            "replay": {"groups": 32, "mode": "success"},
        },
        "rollout": {"prompts_per_step": 8, "group_size": 2},
        "optim": {"micro_batch": 4},
    },
    "trunk": {
        "method": {"advantage": GAE, "critic": {"sharing": "trunk"}},
        "optim": {"micro_batch_tokens": 40},
    },
    "areal": {  # the second batch is drawn while the first step trains, on both
        "method": {
            "asynchrony": {"mode": "bounded"},
            "loss": {"importance_correction": "decoupled"},
        },
        "optim": {"micro_batch": 8},
    },
    "noise": {
        "method": {
            "advantage": {"scale": "none"},
            "noise": {"correction": "backward", "false_negative": 0.3, "appeals": True},
        },
        "optim": {"micro_batch": 8},
        "reward": {"max_fault_ratio": 1.0},
    },
    "lora": {"method": {"loss": {"kl_coef": 0.05}}, "model": {"lora": {"rank": 4}}},
}


def launch(command: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, check=False, timeout=280,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.fixture
def jobs(loaded: None, tiny_config: MakeConfig, tmp_path: Path) -> Callable[..., list[Job]]:
    """Runs of 2 steps; some once more, stopped after 1 and then taken up. Some have faults."""
    from assay.trainer.settings import config

    def make(engine: str, names: list[str], *, resumed: tuple[str, ...] = ()) -> list[Job]:
        made = []
        for name in [*names, *(f"{name}-resumed" for name in resumed)]:
            for steps in (1, 2) if name.endswith("-resumed") else (2,):
                sections = {**METHODS[name.removesuffix("-resumed")]}
                sections["run"] = {"steps": steps, "checkpoint_every": 0, "samples_every": 0}
                path = tmp_path / f"{name}-{steps}.toml"
                path.write_text(config.to_toml(tiny_config(eval={"prompts": 7}, **sections)))
                folder = tmp_path / engine / name
                made.append(Job(str(path), str(folder), faulty=name in FAULTY))
        return made

    return make


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "names"), [("ddp", list(METHODS)), ("fsdp2", ["ppo", "lora"])])
def test_two_processes_give_the_curve_of_one(
    jobs: Callable[..., list[Job]], tmp_path: Path, engine: str, names: list[str]
) -> None:
    """And, stopped and resumed, that of a run that was never stopped."""
    from assay.kit.runs.environment import calm

    calm()
    resumed = ("ppo", "lora")
    write(jobs(engine, names, resumed=resumed), tmp_path / "jobs.json")
    done = launch([*LAUNCHERS[engine], SUPPORT, tmp_path / "jobs.json", engine])
    assert done.returncode == 0, done.stderr[-5000:]
    for job in jobs("one", names):
        do(job)
    for name in names:
        found, expected = rows(tmp_path / engine / name), rows(tmp_path / "one" / name)
        same(found, expected, but=("padding_ratio",))  # each process packs its own rows
        same_rollouts(tmp_path / engine / name, tmp_path / "one" / name)
        for kind in ("model", "critic", "adapter"):
            assert_equal_weights(tmp_path / engine / name / kind, tmp_path / "one" / name / kind)
    for name in resumed:
        again, whole = tmp_path / engine / f"{name}-resumed", tmp_path / engine / name
        same(rows(again), rows(whole))
        assert_equal_weights(again / "model", whole / "model")
    for name in ("pairwise", "in-pairs"):
        if name in names:
            where = (tmp_path / one / name / "anchors.jsonl" for one in (engine, "one"))
            anchors, expected = (path.read_bytes() for path in where)
            assert anchors == expected
    for name in FAULTY:
        if name in names:
            found = rows(tmp_path / engine / name)
            assert all(row["faults"]["WORKER_DIED"] > 8 for row in found)


def same_rollouts(found: Path, expected: Path) -> None:
    """Two processes together keep what one keeps; each rollout's credit is with who trained."""
    from assay.kit.runs.rollouts import files_in, read_rollouts

    assert {one.process for one in files_in(found / "rollouts")} == {0, 1}
    ours, theirs = list(read_rollouts(found)), list(read_rollouts(expected))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for name in (
            "step",
            "phase",
            "draw",
            "sample",
            "ids",
            "response",
            "own",
            "finished",
            "trained",
        ):
            assert one[name] == other[name], name
        assert one["shaped_reward"] == pytest.approx(other["shaped_reward"], abs=1e-4)
        assert (one["fault"] is None) == (other["fault"] is None)
        spread, expected_spread = one["entropies"] or [], other["entropies"] or []
        assert [value is None for value in spread] == [value is None for value in expected_spread]
        pairs = zip(spread, expected_spread, strict=True)
        assert all(a == pytest.approx(b, abs=2e-3) for a, b in pairs if a is not None)


def assert_equal_weights(found: Path, expected: Path) -> None:
    """Of all safetensors; both folders may be absent."""
    import torch
    from safetensors.torch import load_file

    files = sorted(path.name for path in expected.glob("*.safetensors"))
    assert files == sorted(path.name for path in found.glob("*.safetensors"))
    for file in files:
        ours, theirs = load_file(found / file), load_file(expected / file)
        assert ours.keys() == theirs.keys()
        for name, weights in ours.items():
            torch.testing.assert_close(weights, theirs[name], rtol=0, atol=1e-5, msg=name)
