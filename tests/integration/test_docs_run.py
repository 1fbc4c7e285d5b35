"""The code of the documentation that is marked to be run, as written, against real services; and
the items of the catalogue, each with the verdict that its page promises."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.clients import Anchor, Data, EmbeddedServices, Item, RewardClient
from assay.reward_server.domain import (
    CompositeVerifier,
    RemoteVerifier,
    VerifierExample,
    VerifierSpec,
)
from docs_support import blocks

ADDRESSES = {"127.0.0.1:50051": "reward", "127.0.0.1:50052": "sandbox"}


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    flags = {"sandbox": ["--languages", "python", "--slots", "1"], "reward": ["--workers", "1"]}
    with EmbeddedServices(["reward", "sandbox"], arguments=flags) as started:
        yield started


@pytest.mark.slow
def test_marked_blocks_run_and_print_what_they_say(
    repository: Path, services: EmbeddedServices, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = [block for block in blocks(repository) if block.runs and not block.needs]
    assert marked
    for block in marked:
        code = block.text
        for address, service in ADDRESSES.items():
            code = code.replace(address, services.address_of(service))
        exec(compile(code, str(block), "exec"), {"__name__": "docs"})
        assert capsys.readouterr().out == block.prints, block


@pytest.mark.slow
def test_items_of_the_catalogue_get_their_verdicts(
    repository: Path, services: EmbeddedServices
) -> None:
    script = runpy.run_path(str(repository / "scripts" / "verifiers_doc.py"))
    folder = repository / "docs" / "use" / "verifiers"
    written = {page.name: page.read_text(encoding="utf-8") for page in folder.iterdir()}
    assert written == script["render"](), "a page too many, or too old"
    scope: dict[str, Any] = {"Item": Item, "Anchor": Anchor, "Data": Data}
    items, verdicts = [], []
    for family, verifiers in script["families_here"]().items():
        for verifier in verifiers:
            if isinstance(verifier, RemoteVerifier | CompositeVerifier):
                continue
            call, example = _shown(script, verifier.spec, verifier.examples)
            assert f"```python\n{call}\n```\n" in written[f"{family}.md"]
            items.append(eval(call, scope))
            verdicts.append((verifier.spec.name, example.verdict))
    assert len(items) > 25
    with RewardClient(services.address) as client:
        results = client.score(items)
    found = [
        (item.verifier, result.judgement.verdict if result.judgement else str(result.fault))
        for item, result in zip(items, results, strict=True)
    ]
    assert found == verdicts


def _shown(
    script: dict[str, Any], spec: VerifierSpec, examples: tuple[VerifierExample, ...]
) -> tuple[str, VerifierExample]:
    for example in examples:
        call = script["as_call"](spec, example)
        if call:
            return call, example
    raise AssertionError(f"{spec.name} has no example that can be shown")
