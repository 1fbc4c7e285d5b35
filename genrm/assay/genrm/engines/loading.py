"""What is known of a model before its weights are read: head, tokenizer, context, revision.

transformers is imported when a model is opened, which takes seconds.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from assay.clients.judging.rendering import SCORE, STEP_END, STEP_LAYOUT, STEP_OUTPUT, TEMPLATE
from assay.genrm.engines.base import Capability
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.prompts import PromptEncoder, StepLayout
from assay.kit import pretrained
from assay.kit.errors import ConfigError, StartupError

Head = Literal["generative", "scalar", "step"]

CAPABILITIES: dict[Head, frozenset[Capability]] = {
    "generative": frozenset({"choose", "write"}),
    "scalar": frozenset({"rate"}),
    "step": frozenset({"rate-steps"}),
}
_ENDINGS: dict[str, Head] = {
    "ForCausalLM": "generative",
    "LMHeadModel": "generative",
    "ForConditionalGeneration": "generative",
    "ForSequenceClassification": "scalar",
    "ForTokenClassification": "step",
    "ForProcessRewardModel": "step",
}
_QWEN_STEP_TOKEN = "<extra_0>"  # noqa: S105  # a token of a vocabulary
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_BLOCK_BYTES = 1 << 16
_BLOCKS = 64
_REVISION_CHARS = 12
_NO_LIMIT = 10**9  # tokenizers say some huge number where they know none

# transformers fills its modules in when they are used, which two threads must not do at a time.
_READING = threading.Lock()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A model without its weights.

    `location` is a folder or a hub name, for `from_pretrained`; `context_tokens` are of prompt and
    answer together; `revision` is as in `ModelInfo`; `digest` is `digest_of` the location.
    """

    location: str
    head: Head
    hf_config: Any
    tokenizer: Any
    encoder: PromptEncoder
    context_tokens: int
    revision: str
    digest: str = ""


def open_model(name: str, config: EngineConfig) -> Opened:
    """Reads everything but the weights; blocks for seconds.

    Raises:
        ConfigError: a setting is wrong or contradicts the model.
        StartupError: the model's files cannot be read.
    """
    with _READING:
        location = settled(pretrained.locate(config.path, _log.info))
        digest = digest_of(location)
        hf_config, tokenizer = _read(name, config, location)
    head = head_of(name, config, hf_config)
    layout = step_layout(name, config, hf_config, tokenizer) if head == "step" else None
    return Opened(
        location=location,
        head=head,
        hf_config=hf_config,
        tokenizer=tokenizer,
        encoder=PromptEncoder(tokenizer, chat_template=_chat_template(config), layout=layout),
        context_tokens=context_of(name, config, hf_config, tokenizer),
        revision=revision_of(config, location, hf_config),
        digest=digest,
    )


def settled(location: str) -> str:
    """A folder by its own name, so that a link to it may change; a hub name as it is."""
    folder = Path(location)
    return str(folder.resolve()) if folder.is_dir() else location


def hub_arguments(config: EngineConfig, location: str) -> dict[str, Any]:
    """Arguments of every `from_pretrained` of this model."""
    arguments: dict[str, Any] = {"trust_remote_code": config.trust_remote_code}
    if config.revision and not Path(location).is_dir():
        arguments["revision"] = config.revision
    return arguments


def _read(name: str, config: EngineConfig, location: str) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer  # noqa: PLC0415  # takes seconds

    arguments = hub_arguments(config, location)
    try:
        hf_config = AutoConfig.from_pretrained(location, **arguments)
        tokenizer = AutoTokenizer.from_pretrained(location, **arguments)
    except Exception as error:
        # Files of others: whatever they make transformers raise means that they cannot be used.
        raise StartupError(
            f"model {name} ({config.path}) cannot be read: {first_line(error)}; give a folder that "
            "save_pretrained wrote, with its tokenizer, or a hub name that this machine can reach"
        ) from error
    return hf_config, tokenizer


def head_of(name: str, config: EngineConfig, hf_config: Any) -> Head:
    """What the model has on top: as configured, else by its architecture's name.

    Raises:
        ConfigError: the name does not say.
    """
    if config.head != "auto":
        return config.head
    architectures = list(getattr(hf_config, "architectures", None) or ())
    for architecture in architectures:
        for ending, head in _ENDINGS.items():
            if str(architecture).endswith(ending):
                return head
    raise ConfigError(
        f"model {name}: its architecture ({', '.join(architectures) or 'none named'}) does not say "
        "what it has on top; set head to generative, scalar or step"
    )


def step_layout(name: str, config: EngineConfig, hf_config: Any, tokenizer: Any) -> StepLayout:
    """Where a step head is read: as configured, else by config.json, else by the vocabulary.

    Raises:
        ConfigError: the step token is not a single one.
    """
    layout = config.step_layout
    if layout == "auto" and not config.step_token:
        layout = getattr(hf_config, STEP_LAYOUT, "auto")
    token = config.step_token or _QWEN_STEP_TOKEN
    known = token in tokenizer.get_vocab()
    if layout == "auto":
        layout = "step-token" if config.step_token or known else "step-end"
    if layout == STEP_END:
        return StepLayout()
    if not known and len(tokenizer(token, add_special_tokens=False)["input_ids"]) != 1:
        raise ConfigError(
            f"model {name}: the step token {token!r} is not one token of its vocabulary; set "
            'step_token, or step_layout = "step-end"'
        )
    return StepLayout(token)


def gives_scores(hf_config: Any) -> bool:
    """Whether a step head gives scores from -1 to 1 (config.json: `assay_step_output`)."""
    return getattr(hf_config, STEP_OUTPUT, "") == SCORE


def trained_on(hf_config: Any) -> str:
    """The template on which a judge was trained (config.json: `assay_template`), if any."""
    return str(getattr(hf_config, TEMPLATE, ""))


def context_of(name: str, config: EngineConfig, hf_config: Any, tokenizer: Any) -> int:
    """Most tokens of prompt and answer together.

    Raises:
        ConfigError: more are configured than the model has positions for, or nothing says.
    """
    text_config = hf_config.get_text_config()
    positions = getattr(text_config, "max_position_embeddings", None)
    positions = positions or getattr(text_config, "n_positions", None)
    own = [int(number) for number in (positions, tokenizer.model_max_length) if number]
    own = [number for number in own if 0 < number < _NO_LIMIT]
    if config.context_tokens:
        if positions and config.context_tokens > int(positions):
            raise ConfigError(
                f"model {name}: context_tokens is {config.context_tokens}, but the model has "
                f"{positions} positions; lower it"
            )
        return config.context_tokens
    if not own:
        raise ConfigError(f"model {name}: its files do not tell its context; set context_tokens")
    return min(own)


def revision_of(config: EngineConfig, location: str, hf_config: Any) -> str:
    """The hub's commit; for a folder what the operator said, or a fingerprint of the weights.

    Behind it stands how the weights of a folder were quantised, because they judge otherwise.
    """
    folder = Path(location)
    if not folder.is_dir():
        commit = getattr(hf_config, "_commit_hash", None) or config.revision or "unknown"
        return str(commit)[:_REVISION_CHARS]
    revision = config.revision or fingerprint(folder)
    return revision if config.quantization == "none" else f"{revision}-{config.quantization}"


def digest_of(location: str) -> str:
    """The fingerprint of a folder; empty for a hub name, whose files do not change."""
    folder = Path(location)
    return fingerprint(folder) if folder.is_dir() else ""


def files_of(folder: Path) -> tuple[set[Path], set[Path]]:
    """Of a folder the weights, and what else says what the model is."""
    weights = {path for pattern in _WEIGHTS for path in folder.glob(pattern)}
    others = {path for path in folder.glob("*.json") if not path.name.startswith("trainer")}
    return weights, others | set(folder.glob("*.jinja"))


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that differ where weights, configuration or vocabulary differ.

    A sha256 over name, size and content of the files. Large weight files are sampled: the first
    block (of safetensors: names and shapes) and 64 more, spread evenly. A training step moves every
    tensor; two files that differ in fewer than a 64th of their bytes may pass for one.
    """
    digest = hashlib.sha256()
    weights, others = files_of(folder)
    for path in sorted(weights | others):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if path in others or size <= _BLOCKS * _BLOCK_BYTES:
                digest.update(file.read())
                continue
            for number in range(_BLOCKS + 1):
                file.seek(number * (size - _BLOCK_BYTES) // _BLOCKS)
                digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()[:_REVISION_CHARS]


def first_line(error: BaseException) -> str:
    """An exception's message in one line, cut."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _chat_template(config: EngineConfig) -> str:
    if not config.chat_template:
        return ""
    try:
        return Path(config.chat_template).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"chat_template {config.chat_template} cannot be read: {first_line(error)}"
        ) from error
