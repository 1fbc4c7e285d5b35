"""What OpenAPI says of the contract as JSON. Data alone."""

from __future__ import annotations

from assay.kit.http import operations as op

VERIFIER = op.query("verifier", "Who judges; /v1/verifiers lists the names.")
TASK = op.query("task", "The kind of task, where no verifier is named.")

OPERATIONS: op.Json = {
    "/v1/score": op.post(
        "assay",
        "Scores a batch. Short forms are read too: docs/use/http.md.",
        op.body(op.ref("reward.v1.BatchScoreRequest")),
        op.answers(
            op.ref("reward.v1.BatchScoreResponse"), "A result for each item, in their order."
        ),
    ),
    "/v1/score:stream": op.post(
        "assay",
        "Scores a batch; results come as they are ready, one JSON a line.",
        op.body(op.ref("reward.v1.BatchScoreRequest")),
        op.answers(
            op.ref("reward.v1.Result"),
            'A result a line; {"error": Problem} as the last line if it had to end early.',
            "application/x-ndjson",
        ),
    ),
    "/v1/verifiers": op.get(
        "assay",
        "Who judges here, and the limits of a batch.",
        op.answers(
            op.ref("reward.v1.ListVerifiersResponse"), "The verifiers and profiles, by name."
        ),
    ),
}
