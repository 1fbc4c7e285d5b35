"""What `assay doctor` says of this machine as a place for models."""

from __future__ import annotations

import sys

import pytest

from assay.genrm.doctor import look


def test_engines_and_the_device_are_named() -> None:
    findings = {name: (found, fine) for name, found, fine in look()}
    assert findings["genrm engine transformers"][1] is True
    assert "torch" in findings["genrm engine transformers"][0]
    assert set(findings) >= {"genrm engine vllm", "genrm engine openai", "genrm device"}
    assert findings["genrm memory"][0].endswith(" MiB")


def test_where_another_server_holds_the_models_torch_may_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """docs/use/packages.md: `pip install --no-deps ./genrm`, for the engine openai alone."""
    monkeypatch.setitem(sys.modules, "torch", None)
    findings = {name: (found, fine) for name, found, fine in look()}
    wanted = "torch not installed; pip install assay-genrm brings both"
    assert findings["genrm engine transformers"] == (wanted, None)
    assert findings["genrm device"] == ("torch is not installed", None)
    assert findings["genrm engine openai"][1] is True
