"""What `assay doctor` says of this machine as a place for models."""

from __future__ import annotations

from assay.genrm.doctor import look


def test_engines_and_the_device_are_named() -> None:
    findings = {name: (found, fine) for name, found, fine in look()}
    assert findings["genrm engine transformers"][1] is True
    assert "torch" in findings["genrm engine transformers"][0]
    assert set(findings) >= {"genrm engine vllm", "genrm engine openai", "genrm device"}
    assert findings["genrm memory"][0].endswith(" MiB")
