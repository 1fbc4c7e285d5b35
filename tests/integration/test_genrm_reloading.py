"""Weights that are replaced while the service judges: no restart, no mixture, no fault."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.api.judge.v1 import judge_pb2
from assay.genrm.engines.loading import fingerprint
from genrm_service import Stubs, item, running, stubs, workers
from genrm_support import make_adapter, make_model
from metrics_support import scrape, total

# Servers start, and load models anew.
pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]
LIMIT_S = 120.0
MODELS = """
default = "judge"
[model.judge]
path = "./current"
reload = true
[model.base]
path = "./one"
[model.lora]
path = "./adapter"
base = "base"
reload = true
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reloading")
    for seed, name in enumerate(("one", "two", "three")):
        make_model(folder / name, seed=seed)
    make_model(folder / "scalar", "scalar")
    for name in ("first", "second"):
        make_adapter(folder / name, folder / "one", seed=len(name))
    (folder / "models.toml").write_text(MODELS, encoding="utf-8")
    return folder


def point(folder: Path, link: str, target: str) -> None:
    """Replaces a link by a rename, as a trainer does that publishes a checkpoint."""
    fresh = folder / "fresh"
    fresh.symlink_to(folder / target)
    fresh.rename(folder / link)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Stubs]:
    point(folder, "current", "one")
    point(folder, "adapter", "first")
    flags = ("--models", folder / "models.toml", "--metrics-port", "0", "--cache-entries", "0")
    with running(*flags) as (address, process), stubs(address) as made:
        assert process.stdout is not None
        made.metrics = process.stdout.readline().split()[-1]
        made.pid = process.pid  # type: ignore[attr-defined]
        yield made


@pytest.fixture
def service(server: Stubs, folder: Path) -> Stubs:
    """The server with the first weights, and no others at work."""
    point(folder, "current", "one")
    point(folder, "adapter", "first")
    one, first = fingerprint(folder / "one"), fingerprint(folder / "first")
    until(lambda: revision(server) == one and revision(server, "lora") == f"{one}+{first}")
    until(lambda: len(workers(server.pid)) == 2)  # type: ignore[attr-defined]
    return server


def reloaded(service: Stubs) -> float:
    """How often the judge's weights were read again, successfully or not."""
    return shown(service, "assay_reloads_total", what="weights of judge")


def judged(service: Stubs, model: str = "", **settings: Any) -> judge_pb2.ModelJudgement:
    settings |= {"model": model, "seed": 7}  # letters are drawn by it
    request = judge_pb2.JudgeResponsesRequest(
        items=[item("i", "It is blue.", ground_truth="blue")],
        settings=judge_pb2.JudgeSettings(**settings),
    )
    [result] = service.judge.JudgeResponses(request, timeout=LIMIT_S).results
    assert result.WhichOneof("outcome") == "judgement", result.fault.message
    return result.judgement


def revision(service: Stubs, model: str = "") -> str:
    return judged(service, model).judge.model_revision


def until(holds: Callable[[], object]) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end_s, "it did not come to be"
        time.sleep(0.1)


def shown(service: Stubs, name: str, **labels: str) -> float:
    return total(scrape(service.metrics), name, **labels)


def test_new_weights_take_the_name_and_nothing_is_mixed(service: Stubs, folder: Path) -> None:
    before, after = fingerprint(folder / "one"), fingerprint(folder / "two")
    first = judged(service)
    assert first.judge.model_revision == before
    seen: list[tuple[str, float]] = []
    stop = threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            found = judged(service)
            seen.append((found.judge.model_revision, round(found.score, 4)))

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        point(folder, "current", "two")
        until(lambda: seen and seen[-1][0] == after)
    finally:
        stop.set()
        asking.join()
    assert len(set(seen)) == 2  # one score for each of the two weights
    assert [name for name, _ in seen] == sorted(
        (name for name, _ in seen), key=[before, after].index
    )
    assert seen[0] == (before, round(first.score, 4))
    # Files that are read again and are the same load nothing.
    pid: int = service.pid  # type: ignore[attr-defined]
    at_work, times = set(workers(pid)), reloaded(service)
    os.kill(pid, signal.SIGHUP)
    until(lambda: reloaded(service) > times)
    assert revision(service) == after
    assert set(workers(pid)) <= at_work


def test_what_was_accepted_before_ends_on_the_old_weights(service: Stubs, folder: Path) -> None:
    before, after = fingerprint(folder / "one"), fingerprint(folder / "two")
    want = judged(service).score
    pid: int = service.pid  # type: ignore[attr-defined]
    old = set(workers(pid))
    items, times = shown(service, "assay_genrm_items_total"), reloaded(service)
    for worker in old:
        os.kill(worker, signal.SIGSTOP)
    late: list[judge_pb2.ModelJudgement] = []
    asking = threading.Thread(target=lambda: late.append(judged(service)))
    asking.start()
    try:
        until(lambda: shown(service, "assay_genrm_items_total") > items)
        point(folder, "current", "two")
        until(lambda: reloaded(service) == times + 1)
        assert revision(service) == after  # while the old ones are still at work
        assert not late
        assert old <= set(workers(pid))
    finally:
        for worker in old:
            os.kill(worker, signal.SIGCONT)
        asking.join()
    assert late[0].judge.model_revision == before
    assert late[0].score == pytest.approx(want, abs=1e-5)
    until(lambda: len(old & set(workers(pid))) == 1)  # the base of the adapter stays


@pytest.mark.parametrize("kind", ["half", "scalar", "gone"])
def test_a_folder_that_cannot_be_served_changes_nothing(
    service: Stubs, folder: Path, tmp_path: Path, kind: str
) -> None:
    before = fingerprint(folder / "one")
    if kind == "half":
        make_model(tmp_path / "half", seed=9)
        weights = tmp_path / "half" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:5000])
    broken = tmp_path / "half" if kind == "half" else folder / kind
    fresh = folder / "fresh"
    fresh.symlink_to(broken)
    fresh.rename(folder / "current")
    until(lambda: shown(service, "assay_reload_stale", what="weights of judge") == 1)
    assert shown(service, "assay_reloads_total", what="weights of judge", result="failed") >= 1
    assert revision(service) == before
    point(folder, "current", "three")
    until(lambda: revision(service) == fingerprint(folder / "three"))
    assert shown(service, "assay_reload_stale", what="weights of judge") == 0


def test_an_adapter_is_replaced_over_a_base_that_stays(service: Stubs, folder: Path) -> None:
    base = fingerprint(folder / "one")
    pid: int = service.pid  # type: ignore[attr-defined]
    at_work = set(workers(pid))
    assert len(at_work) == 2
    assert revision(service, "lora") == f"{base}+{fingerprint(folder / 'first')}"
    plain, first = judged(service, "base").score, judged(service, "lora").score
    assert abs(plain - first) > 1e-3
    point(folder, "adapter", "second")
    until(lambda: revision(service, "lora") == f"{base}+{fingerprint(folder / 'second')}")
    assert judged(service, "lora").score != pytest.approx(first, abs=1e-4)
    assert judged(service, "base").score == pytest.approx(plain, abs=1e-6)
    assert set(workers(pid)) == at_work
    listed = service.judge.ListJudgeModels(judge_pb2.ListJudgeModelsRequest(), timeout=5)
    assert [model.name for model in listed.models] == ["base", "judge", "lora"]
