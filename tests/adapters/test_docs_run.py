"""The code of trainers' pages that needs the trainer, run as written against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.clients import EmbeddedServices
from docs_support import Block, blocks

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

REPOSITORY = Path(__file__).resolve().parents[2]
MARKED = [block for block in blocks(REPOSITORY) if block.needs]


def test_some_blocks_need_a_trainer() -> None:
    assert MARKED


@pytest.mark.parametrize("block", MARKED, ids=str)
def test_a_marked_block_prints_what_it_says(
    block: Block,
    server: EmbeddedServices,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip(block.needs, reason="see `make test-adapters`")
    capsys.readouterr()
    code = block.text.replace("127.0.0.1:50051", server.address)
    exec(compile(code, str(block), "exec"), {"__name__": "docs"})
    assert capsys.readouterr().out == block.prints, block
