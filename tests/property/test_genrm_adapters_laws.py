"""LoRA adapters over one base: a row says what PEFT says of its adapter alone, in any company."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genrm_engine_support import Alone, Worker
from genrm_support import make_adapter, make_model

SETTINGS = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
KEYS = ("", "one", "two")
SHARED = tuple((7 * n) % 290 + 4 for n in range(50))
OPTIONS = ((5,), (6, 7), (6, 9))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    base = make_model(folder / "base")
    one = make_adapter(folder / "one", base, seed=1)
    two = make_adapter(folder / "two", base, seed=2, target_modules=["k_proj", "up_proj"], r=8)
    return {"": base, "one": one, "two": two}


@pytest.fixture(scope="module")
def alone(folders: dict[str, Path]) -> dict[str, Alone]:
    base = folders[""]
    return {key: Alone(base, "generative", folders[key] if key else None) for key in KEYS}


@pytest.fixture(scope="module")
def worker(folders: dict[str, Path]) -> Worker:
    made = Worker(folders[""], "generative")
    for key in KEYS[1:]:
        made.network.adapters.load(key, str(folders[key]))
    return made


requests = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.integers(0, 50).map(lambda count: SHARED[:count]),
        st.lists(st.integers(4, 290), min_size=1, max_size=12).map(tuple),
    ),
    min_size=1,
    max_size=9,
)
limits = st.fixed_dictionaries(
    {
        "max_batch_items": st.sampled_from([1, 4, 128]),
        "prefix_cache_tokens": st.sampled_from([0, 60, 32768]),
    }
)


def choose(key: str, ids: tuple[int, ...]) -> dict[str, Any]:
    return {"kind": "choose", "ids": ids, "options": OPTIONS, "adapter": key}


def write(key: str, ids: tuple[int, ...]) -> dict[str, Any]:
    plain = {"max_tokens": 5, "temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ()}
    return {"kind": "write", "ids": ids, "adapter": key, **plain}


@pytest.mark.slow
@SETTINGS
@given(requests, limits)
def test_a_row_goes_through_its_adapter_and_no_other(
    worker: Worker, alone: dict[str, Alone], asked: list[Any], limits: dict[str, int]
) -> None:
    worker.fresh(**limits)
    rows = [(key, shared + own) for key, shared, own in asked]
    for _ in range(2):  # the second finds beginnings kept, each adapter its own
        chosen = worker.ask([choose(*row) for row in rows])
        written = worker.ask([write(*row) for row in rows])
        for (key, ids), answer, text in zip(rows, chosen, written, strict=True):
            for option, logprob in zip(OPTIONS, answer["logprobs"], strict=True):
                want = math.exp(alone[key].logprob(ids, option))
                assert math.exp(logprob) == pytest.approx(want, abs=1e-5)
            assert text["text"] == worker.encoder.decode(alone[key].greedy(ids, 5), ids)


def test_adapters_differ_and_share_nothing_that_is_kept(worker: Worker) -> None:
    worker.fresh()
    first = worker.ask([choose(key, SHARED) for key in KEYS])
    assert len({answer["logprobs"][0] for answer in first}) == 3
    assert [answer["cached"] for answer in first] == [0, 0, 0]
    again = worker.ask([choose(key, SHARED) for key in KEYS])
    assert [answer["cached"] for answer in again] == [len(SHARED) - 1] * 3
    tree = worker.loop._tree
    assert tree is not None
    kept = tree.tokens
    tree.forget("one")
    assert 0 < tree.tokens < kept
    cached = [answer["cached"] for answer in worker.ask([choose(key, SHARED) for key in KEYS])]
    assert cached == [len(SHARED) - 1, 0, len(SHARED) - 1]


def test_an_adapter_that_is_gone_is_a_fault_and_never_the_base(folders: dict[str, Path]) -> None:
    """PEFT itself lets a row of an unknown adapter through the base alone."""
    worker = Worker(folders[""], "generative")
    worker.loop.inbox.put({"load": "one", "folder": str(folders["one"]), "id": 900})
    plain, other = worker.ask([choose("", SHARED), choose("one", SHARED)])
    assert plain["logprobs"] != other["logprobs"]
    assert "error" not in worker.answers[900]
    (late,) = worker.send([{**write("one", SHARED), "max_tokens": 500, "temperature": 1.5}])
    worker.loop.turn()
    worker.loop.inbox.put({"unload": "one", "id": 901})
    gone, still, never = worker.ask([choose(k, SHARED) for k in ("one", "", "never")])
    assert worker.answers[late]["error"][0] == "ENGINE_FAILED"
    for answer in (gone, never):
        assert answer["error"][0] == "ENGINE_FAILED"
        assert "not loaded" in answer["error"][1]
    assert still["logprobs"] == pytest.approx(plain["logprobs"], abs=1e-5)
    assert not worker.loop._begun


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bias": "all"}, "bias = 'all' would touch the base"),
        ({"use_dora": True}, "use_dora = True"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"target_modules": ["lm_head"], "save": False}, "output embeddings"),
    ],
)
def test_an_adapter_that_would_touch_other_rows_is_refused(
    folders: dict[str, Path], worker: Worker, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    from assay.genrm.engines.worker.adapters import AdapterError

    folder = tmp_path / "bad"
    if settings.pop("save", True):
        make_adapter(folder, folders[""], **settings)
    else:
        renamed(folders["one"], folder, "model.layers.0.mlp.up_proj", "lm_head")
    with pytest.raises(AdapterError, match=words):
        worker.network.adapters.load("bad", str(folder))
    assert "bad" not in worker.network.adapters


def renamed(source: Path, folder: Path, old: str, new: str) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, folder)
    path = folder / "adapter_model.safetensors"
    save_file({name.replace(old, new): value for name, value in load_file(path).items()}, path)


def test_files_that_do_not_fit_leave_the_others_as_they_are(
    folders: dict[str, Path], worker: Worker, alone: dict[str, Alone], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    from assay.genrm.engines.worker.adapters import AdapterError

    wide = make_model(tmp_path / "wide", hidden=96)
    make_adapter(tmp_path / "theirs", wide)
    renamed(folders["one"], tmp_path / "moved", "layers.1.", "layers.7.")
    shutil.copytree(folders["one"], tmp_path / "spy")
    path = tmp_path / "spy" / "adapter_model.safetensors"
    weights = load_file(path)
    base = "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight"
    import torch

    save_file(weights | {base: torch.zeros(64, 64)}, path)
    shutil.copytree(folders["one"], tmp_path / "half")
    half = tmp_path / "half" / "adapter_model.safetensors"
    half.write_bytes(half.read_bytes()[:200])
    shutil.copytree(folders["one"], tmp_path / "other-kind")
    settings_file = tmp_path / "other-kind" / "adapter_config.json"
    settings_file.write_text(json.dumps({"peft_type": "IA3", "task_type": "CAUSAL_LM"}))
    for name, words in {
        "theirs": "size mismatch",
        "moved": "does not fit this model",
        "spy": "a weight that is the base's",
        "half": "cannot load it",
        "other-kind": "LoRA is what is served",
    }.items():
        with pytest.raises(AdapterError, match=words) as caught:
            worker.network.adapters.load(name, str(tmp_path / name))
        assert "\n" not in str(caught.value)
        assert name not in worker.network.adapters
    worker.fresh()
    for key, answer in zip(KEYS, worker.ask([choose(key, SHARED) for key in KEYS]), strict=True):
        want = [alone[key].logprob(SHARED, option) for option in OPTIONS]
        assert answer["logprobs"] == pytest.approx(want, abs=1e-4)
