"""Optional packages that settings need, checked before a model is loaded."""

from __future__ import annotations

from importlib.util import find_spec

from assay.clients.services import how_to_add
from assay.kit.errors import ConfigError
from assay.trainer.settings.config import Config


def check_installed(config: Config) -> None:
    """Checks that the packages of the settings are installed.

    Raises:
        ConfigError: one is missing; the line has the command that installs it.
    """
    for setting, package, install in _wanted(config):
        if find_spec(package) is None:
            raise ConfigError(
                f"{setting} needs {package.replace('_', '-')}, which is not installed here; "
                f"{install}"
            )


def _wanted(config: Config) -> list[tuple[str, str, str]]:
    model, optimizer = config.model, config.optim.optimizer
    extra = {name: how_to_add(name, ["assay-rl-trainer"]) for name in ("vllm", "memory")}
    wanted = []
    vllm = config.rollout.vllm
    if config.rollout.backend == "vllm" and (vllm.mode == "colocate" or vllm.transfer == "nccl"):
        wanted.append(('rollout.backend = "vllm"', "vllm", extra["vllm"]))
    if optimizer != "adamw":
        wanted.append((f'optim.optimizer = "{optimizer}"', "bitsandbytes", extra["memory"]))
    if model.liger:
        wanted.append(("model.liger = true", "liger_kernel", extra["memory"]))
    if model.attention.startswith("flash_attention"):
        name = "flash_attn_3" if model.attention.endswith("3") else "flash_attn"
        wanted.append(
            (
                f'model.attention = "{model.attention}"',
                name,
                f"run: pip install {name.replace('_', '-')} --no-build-isolation",
            )
        )
    if "/" in model.attention:
        wanted.append(
            (f'model.attention = "{model.attention}"', "kernels", "run: pip install kernels")
        )
    return wanted
