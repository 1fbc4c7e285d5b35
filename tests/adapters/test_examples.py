"""The scripts in examples/ with the trainers that they are for."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.conftest import RIGHT, WRONG
from assay.clients import EmbeddedServices
from integration.test_examples import arguments_of

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_verl_takes_the_keys(server: EmbeddedServices, environment: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verl", reason="see `make test-adapters`")
    from verl.trainer.ppo.reward import load_reward_manager

    from adapters.test_verl import config_of, rows, scored
    from trainer_support import tiny_tokenizer

    keys = arguments_of(EXAMPLES / "verl_grpo.sh")
    keys["+reward.custom_reward_function.reward_kwargs.target"] = server.address
    config = config_of(*(f"{name}={value}" for name, value in keys.items()))
    assert config.algorithm.adv_estimator == "grpo"
    found = scored(load_reward_manager(config, tiny_tokenizer()), rows([RIGHT, WRONG]))
    assert [one["reward_score"] for one in found] == [1.0, 0.0]


def test_openrlhf_loads_the_file(environment: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openrlhf", reason="see `make test-adapters`")
    from types import SimpleNamespace

    from openrlhf.utils.agent import SingleTurnAgentExecutor

    from adapters.test_openrlhf import Engine
    from trainer_support import tiny_tokenizer

    options = arguments_of(EXAMPLES / "openrlhf_grpo.sh")
    executor = SingleTurnAgentExecutor(options["--reward.remote_url"])
    sampling = SimpleNamespace(max_tokens=64, logprobs=None)
    told = asyncio.run(
        executor.execute("2+2?", "4", sampling, 512, tiny_tokenizer(), Engine(RIGHT))
    )
    assert told["reward"].tolist() == [1.0]


def test_ms_swift_imports_the_plugin(environment: pytest.MonkeyPatch) -> None:
    pytest.importorskip("swift", reason="see `make test-adapters`")
    from swift.rewards import orms
    from swift.utils import import_external_file

    from adapters.test_ms_swift import rewards_of

    options = arguments_of(EXAMPLES / "ms_swift_grpo.sh")
    import_external_file(options["--external_plugins"])
    assert options["--reward_funcs"] in orms
    assert rewards_of(["4", "4", "4"]).flatten().tolist() == [1.0, 0.0, 1.0]


def test_nemo_gyms_server(environment: pytest.MonkeyPatch, server: EmbeddedServices) -> None:
    pytest.importorskip("nemo_gym", reason="see `make test-adapters`")
    from unittest.mock import MagicMock

    from nemo_gym.server_utils import ServerClient
    from starlette.testclient import TestClient

    from adapters.test_nemo_gym import rollout
    from assay.clients.trainers.nemo_gym import AssayResourcesServerConfig

    kind = runpy.run_path(str(EXAMPLES / "nemo_gym_app.py"))["AssayResourcesServer"]
    tree = yaml.safe_load((EXAMPLES / "nemo_gym.yaml").read_text())
    settings = {**tree["assay"]["resources_servers"]["assay"], "target": server.address}
    config = AssayResourcesServerConfig(host="127.0.0.1", port=1, name="assay", **settings)
    made = kind(config=config, server_client=MagicMock(spec=ServerClient))
    with TestClient(made.setup_webserver()) as app:
        answer = app.post("/verify", json=rollout(RIGHT, expected_answer="4"))
        assert answer.json()["reward"] == 1.0
        answer = app.post("/verify", json=rollout(RIGHT, expected_answer=" "))
        assert answer.status_code == 503


def test_tinkers_data_set(environment: pytest.MonkeyPatch, server: EmbeddedServices) -> None:
    pytest.importorskip("tinker_cookbook", reason="see `make test-adapters`")
    from tinker_cookbook.rl.rollouts import do_group_rollout

    from adapters.test_tinker import RENDERER, Scripted

    example = runpy.run_path(str(EXAMPLES / "tinker_rl.py"))
    rows = example["Sums"](RENDERER, groups=2, samples=2)
    assert len(rows) == 5000
    first, second = rows.get_batch(1)  # 0 + 2, 0 + 3
    policy = Scripted(r"\boxed{2}", r"\boxed{3}", r"\boxed{2}", r"\boxed{3}")
    rewards = [
        asyncio.run(do_group_rollout(group, policy)).get_total_rewards()
        for group in (first, second)
    ]
    assert sorted(rewards[0]) == sorted(rewards[1]) == [0.0, 1.0]


def test_inspect_evaluates(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="see `make test-adapters`")
    from inspect_ai import eval as run_eval
    from inspect_ai.model import get_model

    from adapters.test_inspect import said

    environment.chdir(EXAMPLES)  # Inspect takes no absolute path
    answers = [said(text) for text in (r"\boxed{4}", r"\boxed{8}", r"\boxed{18}")]
    (log,) = run_eval(
        "inspect_eval.py",
        model=get_model("mockllm/model", custom_outputs=answers),
        max_samples=1,
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(2 / 3)


async def test_verifiers_environment(environment: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verifiers.legacy", reason="see `make test-adapters`")
    from adapters.chat_support import scripted_policy
    from adapters.test_verifiers_rubric import outputs_of

    env: Any = runpy.run_path(str(EXAMPLES / "verifiers_env.py"))["load_environment"]()
    env.dataset = env.get_dataset().select([4, 5])
    with scripted_policy(RIGHT) as url:
        outputs = await outputs_of(env, url, environment)
    assert [output["reward"] for output in outputs] == [1.0, 0.0]
