"""A response of megabytes costs its own caller time, and another caller a small share of it."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.kit.errors import reason_of
from genrm_service import SKY, Stubs, item, running, stubs
from genrm_support import make_model

pytestmark = pytest.mark.timeout(300)
LIMIT_S = 120.0
HUGE = "so it is 7 and 8, " * 216_000  # 3.9 MB
# So large a context that the text might fit: it has to be made into tokens to be refused.
CONTEXT = 300_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    folder = tmp_path_factory.mktemp("huge")
    text = ""
    for name, kind in (("judge", "causal"), ("steps", "step")):
        make_model(folder / name, kind, context=CONTEXT)  # type: ignore[arg-type]
        text += f'[model.{name}]\npath = "./{name}"\ncontext_tokens = {CONTEXT}\n'
    (folder / "models.toml").write_text(text, encoding="utf-8")
    with (
        running("--models", folder / "models.toml") as (address, _),
        stubs(address) as made,
    ):
        yield made


def judged(service: Stubs, response: str) -> Any:
    request = judge_pb2.JudgeResponsesRequest(items=[item("i", response, ground_truth="blue")])
    [result] = service.judge.JudgeResponses(request, timeout=LIMIT_S).results
    return result


def scored(service: Stubs, response: str) -> Any:
    """By steps, each a line."""
    one = process_pb2.StepItem(id="i", prompt=SKY, response=response)
    request = process_pb2.ScoreStepsRequest(items=[one])
    [result] = service.process.ScoreSteps(request, timeout=LIMIT_S).results
    return result


def seconds(call: Any, *arguments: Any) -> tuple[float, Any]:
    began_s = time.monotonic()
    found = call(*arguments)
    return time.monotonic() - began_s, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "small"), [(judged, "It is blue."), (scored, "It is blue.\nSo it is.")]
)
def test_a_small_request_does_not_wait_for_a_huge_one(
    service: Stubs, call: Any, small: str
) -> None:
    alone = [seconds(call, service, f"{small} {n}")[0] for n in range(5)]
    large: list[tuple[float, Any]] = []
    text = HUGE if call is judged else HUGE.replace(", ", "\n")
    asking = threading.Thread(target=lambda: large.append(seconds(call, service, text)))
    asking.start()
    beside = []
    while asking.is_alive():
        took_s, found = seconds(call, service, f"{small} {len(beside)}")
        if asking.is_alive():
            beside.append(took_s)
        assert found.WhichOneof("outcome") != "fault", found.fault.message
    [(large_s, refused)] = large
    assert reason_of(refused.fault) == "CONTEXT_TOO_LONG"
    print(
        f"{call.__name__}: alone {statistics.median(alone):.3f} s, huge {large_s:.2f} s, beside",
        f"{statistics.median(beside):.3f} s, at most {max(beside):.3f} s of {len(beside)}",
    )
    assert len(beside) > 10
    assert max(beside) < max(0.25 * large_s, 10 * max(alone))
