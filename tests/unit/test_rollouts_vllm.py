"""What vLLM is asked, how it is started, and what is refused before it is: without vLLM."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from assay.kit.errors import ConfigError
from assay.trainer.engines import probing, vllm, vllm_server
from assay.trainer.engines.engine import EngineHost, OpenRequest, Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Draw, FirstToken, Request, Response, Sampling
from assay.trainer.engines.vllm import Loop, _Drawing
from assay.trainer.engines.vllm_requests import check, logprobs_mode, parameters
from assay.trainer.engines.vllm_server import Server
from assay.trainer.engines.vllm_wires import Event, TokenStream
from assay.trainer.engines.vllm_worker import PolicyWeights, refresh_tied_head
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings import config as configs
from assay.trainer.settings.sections import RolloutConfig, VllmConfig
from rollouts_support import ENDS, NumberTokenizer, ignore, make_requests, random_model
from vllm_support import tiny_policy

WORDS = st.integers(0, 2**64 - 1)


def host(model: Any = None, *, seed: int = 5, **settings: Any) -> EngineHost:
    return EngineHost(
        lambda: nullcontext(model), NumberTokenizer(), seed, ENDS, nullcontext, **settings
    )


def row(
    begun: int = 0, *, number: int = 3, index: int = 1, turn: int = 2, **sampling: Any
) -> OpenRequest:
    had = Response((4,) * begun, "", (-1.0,) * begun, truncated=False, finished=False)
    draw = Draw(number, probing._SAID, (3, 4, 5))
    request = Request(draw, index, had if begun else None, turn=turn)
    return OpenRequest((0,), request, Sampling(**{"max_new_tokens": 20, **sampling}))


@given(
    st.tuples(WORDS, WORDS, WORDS, st.integers(0, 19)),
    st.tuples(WORDS, WORDS, WORDS, st.integers(0, 19)),
)
def test_vllm_s_seed_is_another_one_for_each_place_and_position(one: Any, other: Any) -> None:
    seeds = []
    for number, index, turn, begun in (one, other):
        asked = parameters(
            row(begun, number=number, index=index, turn=turn), host(), own_draws=False
        )
        seeds.append(asked["seed"])
        assert 0 <= asked["seed"] < 2**63
    assert (seeds[0] == seeds[1]) == (one == other)


@given(st.integers(0, 2**130), st.integers(0, 19), st.booleans())
def test_what_is_asked_goes_through_json(seed: int, begun: int, own_draws: bool) -> None:
    asked = parameters(row(begun, first=FirstToken(30.0, 8)), host(seed=seed), own_draws=own_draws)
    assert json.loads(json.dumps(asked)) == asked
    assert asked["max_tokens"] == 20 - begun
    assert asked["stop_token_ids"] == sorted(ENDS)
    assert asked["ignore_eos"]
    if own_draws:
        assert asked["extra_args"]["assay"]["seed"] == str(seed)
        assert asked["extra_args"]["assay"]["position"] == begun


def test_log_probabilities_are_asked_for_where_they_are_the_policy_s() -> None:
    assert parameters(row(top_p=0.9), host(), own_draws=True)["logprobs"] == 0
    assert parameters(row(), host(), own_draws=False)["logprobs"] == 0
    assert parameters(row(top_p=0.9), host(), own_draws=False)["logprobs"] is None
    assert logprobs_mode(own_draws=True) != logprobs_mode(own_draws=False)
    for draws in ("run", "engine"):
        for filters in ({}, {"top_k": 3}, {"top_p": 0.9}):
            config = RolloutConfig(backend="vllm", vllm=VllmConfig(draws=draws), **filters)  # type: ignore[arg-type]
            asked = parameters(row(**filters), host(), own_draws=config.vllm.own_draws)
            assert config.tells_logps == (asked["logprobs"] is not None)


def test_what_vllm_would_mistake_is_refused() -> None:
    fits: dict[str, Any] = {"vocabulary": 24, "context": 23, "own_draws": False}
    check(row(), **fits)
    check(row(temperature=0.0), **fits)
    check(row(begun=7), **fits)
    with pytest.raises(ConfigError, match=r"3 tokens and 20 more do not fit into the 22"):
        check(row(), **{**fits, "context": 22})
    with pytest.raises(ValueError, match="holds token 5, and the model has tokens 0 to 4"):
        check(row(), **{**fits, "vocabulary": 5})
    for sampling in ({"first": FirstToken(30.0, 8)}, {"temperature": 3.0}, {"temperature": 0.001}):
        with pytest.raises(ConfigError, match=r'set rollout\.vllm\.draws = "run"'):
            check(row(**sampling), **fits)
        check(row(**sampling), **{**fits, "own_draws": True})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["rollout.vllm.tensor_parallel_size=2"], 'set rollout.vllm.mode = "server"'),
        (["rollout.vllm.mode=server"], "needs rollout.vllm.server_url"),
        (
            ["rollout.vllm.mode=server", "rollout.vllm.server_url=http://127.0.0.1:1"],
            "needs rollout.vllm.folder",
        ),
        (["rollout.vllm.sleep=3"], "rollout.vllm.sleep"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configs.build({}, ["rollout.backend=vllm", *settings], origin="test")
    assert said in str(raised.value)


def test_the_engine_is_made_of_the_settings(tmp_path: Path) -> None:
    url = "rollout.vllm.server_url=http://127.0.0.1:1"
    config = configs.build(
        {},
        [
            "rollout.backend=vllm",
            "rollout.vllm.mode=server",
            url,
            f"rollout.vllm.folder={tmp_path}",
        ],
        origin="test",
    )
    model = tiny_policy()
    engine = vllm.make_vllm(host(model), config)
    assert isinstance(engine, vllm_server.VllmServerEngine)
    with pytest.raises(TrainingStoppedError, match="is the vLLM server running"):
        engine.update_weights()
    with pytest.raises(TrainingStoppedError, match="is the vLLM server running"):
        engine.submit((0,), make_requests()[0], Sampling(4))
    assert not engine.busy
    engine.close()


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_it_says_what_to_install() -> None:
    config = configs.build({}, ["rollout.backend=vllm"], origin="test")
    with pytest.raises(ConfigError, match="pip install vllm"):
        vllm.make_vllm(host(), config)
    with pytest.raises(ConfigError, match="pip install vllm"):
        vllm_server.nccl_transfer(VllmConfig(), None, None, None)  # type: ignore[arg-type]


def test_how_vllm_is_started() -> None:
    base = random_model()

    def of(*, cpu: bool, batch: int = 0, **settings: Any) -> dict[str, Any]:
        return vllm.starts(
            base, VllmConfig(**settings), dtype=torch.bfloat16, seed=2**40, batch=batch, cpu=cpu
        )

    gpu = of(cpu=False, sleep=2, gpu_memory_utilization=0.4, batch=7)
    assert gpu["enable_sleep_mode"]
    assert (gpu["gpu_memory_utilization"], gpu["max_num_seqs"]) == (0.4, 7)
    assert (gpu["dtype"], gpu["max_model_len"]) == ("bfloat16", 128)
    assert gpu["seed"] < 2**32
    assert not of(cpu=False)["enable_sleep_mode"]
    cpu = of(cpu=True, sleep=2, max_model_length=64)
    assert "enable_sleep_mode" not in cpu, "on a CPU there is nothing to give back"
    assert cpu["max_model_len"] == 64
    assert "enable_chunked_prefill" not in cpu
    own = of(cpu=True, draws="engine")
    assert not own["enable_chunked_prefill"], "seeds and prompts in two parts are its death"
    assert own["max_num_batched_tokens"] >= own["max_model_len"]
    assert "logits_processors" not in own


def test_the_model_is_described_as_vllm_knows_it(tmp_path: Path) -> None:
    base = random_model()
    base.config.architectures = None
    vllm.describe(base, str(tmp_path))
    told = json.loads((tmp_path / "config.json").read_text())
    assert told["architectures"] == ["LlamaForCausalLM"]
    assert base.config.architectures is None


def test_weights_are_written_in_parts_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_server, "_FILE_BYTES", 5_000)
    state = {name: t.detach() for name, t in random_model().named_parameters()}
    vllm_server.write(state.items(), tmp_path / "weights")
    files = sorted((tmp_path / "weights").iterdir())
    assert len(files) > 2
    found = {name: t for file in files for name, t in load_file(file).items()}
    assert set(found) == set(state)
    assert all(torch.equal(found[name], state[name]) for name in state)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="does this machine see that folder"):
        PolicyWeights().load_policy_weights(str(tmp_path / "empty"))


def probed(model: Any) -> list[OpenRequest]:
    """What the policy itself draws for a probe."""
    rows = probing.probes(host(), 24, 0)
    own = replace(host(model), end_ids=frozenset())
    answers = Sampler(HfEngine(own), rows[0].sampling).generate([r.request for r in rows], ignore)
    for one, answer in zip(rows, answers, strict=True):
        one.add(answer.ids, answer.logprobs)
    return rows


def test_a_probe_tells_the_policy_from_another() -> None:
    model = random_model()
    rows = probed(model)
    probing.check(rows, host(model), model, alarm=0.1, engine="it")
    assert model.training
    for other in (random_model(seed=1), random_model(spread=0.41)):
        with pytest.raises(
            TrainingStoppedError, match="it does not answer by the policy's weights"
        ):
            probing.check(rows, host(other), other, alarm=0.1, engine="it")
    for one in rows:
        one.logprobs = [value - 0.05 for value in one.logprobs or ()]
    with pytest.raises(TrainingStoppedError, match=r"where 0\.01 may be rounding"):
        probing.check(rows, host(model), model, alarm=0.1, engine="it")
    probing.check(rows, host(model, dtype=torch.bfloat16), model, alarm=0.1, engine="it")
    rows[0].logprobs = [float("nan")] * 8
    with pytest.raises(TrainingStoppedError):
        probing.check(rows, host(model, dtype=torch.bfloat16), model, alarm=0.1, engine="it")


def test_probes_are_new_ones_each_time() -> None:
    def ids(vocabulary: int, round_: int, own: EngineHost) -> list[tuple[int, ...]]:
        return [row.input_ids for row in probing.probes(own, vocabulary, round_)]

    own = host()
    assert not set(ids(24, 0, own)) & set(ids(24, 1, own))
    assert ids(24, 0, own) == ids(24, 0, own)
    assert all(0 <= token < 24 for row in ids(24, 0, own) for token in row)
    assert all(1_000 <= token < 30_000 for row in ids(150_000, 0, own) for token in row)
    own.tokenizer.bos_token_id = 7
    assert {row[0] for row in ids(150_000, 0, own)} == {7}


def test_a_head_that_is_not_tied_is_left_alone() -> None:
    model = tiny_policy(tied=False)
    weight = model.lm_head.weight
    refresh_tied_head(model)
    assert model.lm_head.weight is weight


def stopping() -> OpenRequest:
    """A row that stops behind "bc" and has begun with "b" (letters: see NumberTokenizer)."""
    return row(begun=1, stops=("bc",))


def test_vllm_is_asked_for_stop_texts_where_there_are_some() -> None:
    asked = parameters(stopping(), host(), own_draws=True)
    assert (asked["stop"], asked["detokenize"]) == (["bc"], True)
    assert (asked["include_stop_str_in_output"], asked["skip_special_tokens"]) == (True, False)
    plain = parameters(row(), host(), own_draws=True)
    assert not plain["detokenize"]
    assert "stop" not in plain


def test_a_stop_text_that_vllm_does_not_see_ends_a_response_all_the_same() -> None:
    """It begins in an earlier step; the tokens behind it, drawn meanwhile, are none of ours."""
    of = Loop(host(), VllmConfig())
    aborted: list[str] = []
    of._engine = SimpleNamespace(abort_request=aborted.extend)
    drawing = _Drawing(stopping(), frozenset({1}))
    of._drawing["7"] = drawing
    c, d = ord("c") - 94, ord("d") - 94
    told = [{id_: SimpleNamespace(logprob=-0.5)} for id_ in (c, d)]
    drawn = SimpleNamespace(token_ids=[c, d], logprobs=told, finish_reason=None)
    output = SimpleNamespace(request_id="7", outputs=[drawn], finished=False)
    assert of._hear(output)
    assert (aborted, list(drawing.ended)) == (["7"], [(drawing.row, True)])
    assert (drawing.row.ids, drawing.row.logprobs) == ([c], [-0.5])
    assert not of._hear(output)  # what still arrives of it


def test_a_server_s_stream_is_closed_behind_a_stop_text() -> None:
    server = Server(host(), VllmConfig())
    c, d = ord("c") - 94, ord("d") - 94
    content = [{"token_id": id_, "logprob": -0.5} for id_ in (c, d)]
    stream = TokenStream(stopping(), frozenset({1}))
    closed: list[bool] = []
    task: Any = SimpleNamespace(cancel=lambda: closed.append(True))
    stream.task = task
    piece = {"token_ids": [c, d], "logprobs": {"content": content}, "finish_reason": None}
    assert server.hear(Event(stream, piece)) is True
    assert (closed, stream.row.ids) == ([True], [c])
