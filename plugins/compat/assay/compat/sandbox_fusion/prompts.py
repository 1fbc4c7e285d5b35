"""SandboxFusion's `/get_prompts` and `/get_prompt_by_id`, for rows that come along. Pure.

Served for `AutoEvalDataset` and `HumanEvalDataset`, whose rows hold what they ask. HumanEval's
free-form instruction is in this project's words. Other data sets' prompts are the peer's texts and
are not served, nor is a data set by its name.
"""

from __future__ import annotations

from string import Template

from assay.compat.fields import Fields
from assay.compat.sandbox_fusion.autoeval import NAMES

MAX_ROWS = 100_000
_RULE = "----------------"
_HINTS = {"zh": ("问题：", "答案："), "en": ("Question:", "Answer:")}  # noqa: RUF001 - its own marks
_FREEFORM = (
    "Complete the function above so that it does what its docstring says. Answer with the whole "
    "code, imports included, in one fenced block, and leave out any main function."
)


def read_prompts(body: object) -> list[dict[str, object]]:
    """The prompts of all rows of a request.

    Raises:
        BadField: a field is missing or wrong, or the kind of data set is not served.
    """
    config = Fields(body).inner("config")
    rows = config.raw("provided_data")
    if not isinstance(rows, list) or len(rows) > MAX_ROWS:
        raise config.bad("provided_data", f"must be a list of at most {MAX_ROWS} rows")
    return [
        _prompt(Fields(row, ("config", "provided_data", number)), config)
        for number, row in enumerate(rows)
    ]


def read_prompt(body: object) -> dict[str, object]:
    """The prompt of the one row of a request; errors as `read_prompts`."""
    config = Fields(body).inner("config")
    return _prompt(config.inner("provided_data"), config)


def _prompt(row: Fields, config: Fields) -> dict[str, object]:
    kind = config.text("dataset_type")
    if kind in NAMES:
        return _autoeval(row, config)
    if kind == "HumanEvalDataset":
        return _humaneval(row, config)
    served = "AutoEvalDataset, HumanEvalDataset"
    raise config.bad("dataset_type", f"{kind[:60]!r} has no prompts here; {served} have")


def _humaneval(row: Fields, config: Fields) -> dict[str, object]:
    prompt = row.text("prompt")
    if config.inner("extra", {}).flag("is_freeform"):
        language = row.text("language", "python").partition(".")[0]
        prompt = f"```{language}\n{prompt}\n```\n\n{_FREEFORM}"
    labels = {name: row.raw(name) for name in row.names() if name != "prompt"}
    name = "task_id" if row.has("task_id") else "name"
    return {"id": row.identity(name), "prompt": prompt, "labels": labels}


def _autoeval(row: Fields, config: Fields) -> dict[str, object]:
    labels, extra = row.loaded_object("labels"), config.inner("extra", {})
    shots = config.flag("is_fewshot") if config.has("is_fewshot") else False
    question = row.text("content")
    context, template = _either(extra, labels, "context"), _either(extra, labels, "prompt_template")
    fewshot = _either(extra, labels, "fewshot") if shots else ""
    if shots and not fewshot:
        raise labels.bad("fewshot", "is required where config.is_fewshot is true")
    locale = config.text("locale") if config.has("locale") else ""
    if template:
        given = {"question": question, "fewshot": fewshot, "context": context, "locale": locale}
        prompt = Template(template).safe_substitute(given)
    elif context or fewshot:
        asks, answers = _HINTS.get(locale, _HINTS["en"])
        rule = _RULE if context and fewshot else ""
        parts = (context, rule, fewshot, f"{asks}{question}", f"{answers}\n")
        prompt = "\n\n".join(filter(None, parts))
    else:
        prompt = question
    every = {name: labels.raw(name) for name in labels.names()}
    return {"id": row.identity("id"), "prompt": prompt, "labels": every}


def _either(extra: Fields, labels: Fields, name: str) -> str:
    """A text of the request, else of the row."""
    for fields in (extra, labels):
        if fields.has(name):
            return fields.text(name)
    return ""
