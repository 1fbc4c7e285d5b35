"""The reward server over HTTP: its own faces, its description, and paths that moved."""

from __future__ import annotations

import json
from importlib import resources

from assay.kit.http.app import Site
from assay.kit.http.faces import Face, Json
from assay.reward_server.http import journal, native
from assay.reward_server.http.operations import OPERATIONS

SCHEMAS_FILE = "schemas.json"
_SANDBOX = (
    "SandboxFusion's and Piston's formats are served by the sandbox: start it with --http-port, "
    "with assay-rl-compat installed beside it, and ask its address"
)
_COMPAT = (
    "it comes with assay-rl-compat: install it beside this server (in a checkout, ./plugins/compat)"
)


def shipped_schemas() -> Json:
    """The contract's messages as JSON Schema; `scripts/openapi_doc.py write` keeps them."""
    text = resources.files(__package__).joinpath(SCHEMAS_FILE).read_text(encoding="utf-8")
    schemas: Json = json.loads(text)
    return schemas


SITE = Site(
    service="reward",
    title="reward_server",
    summary="Rewards for model responses, over HTTP.",
    description=(
        "One scoring path, in the formats of several trainers. A fault is never a number: /v1 "
        "answers with it in the item's place, other formats with what they have for it, else with "
        "a status and a problem (RFC 9457) that holds the reason and whether the same request may "
        "be sent again."
    ),
    own=(
        Face("contract", native.routes, OPERATIONS, shipped_schemas()),
        Face("journal", journal.routes),
    ),
    absent={
        **dict.fromkeys(
            ("/run_code", "/submit", "/run_jupyter", "/get_prompts", "/get_prompt_by_id",
             "/v1/ping", "/api/v2/execute", "/api/v2/runtimes", "/api/v2/packages"),
            _SANDBOX,
        ),
        **dict.fromkeys(
            ("/get_reward", "/slime", "/verify", "/seed_session", "/aggregate_metrics",
             "/reverify_mode", "/execute_python", "/stateful_python_code_exec", "/end_session",
             "/v1/fine_tuning/alpha/graders/run"),
            _COMPAT,
        ),
    },
)  # fmt: skip
