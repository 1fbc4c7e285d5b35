"""The HTTP/JSON facade: other trainers' wire formats over the same scoring path as gRPC.

    rim         request id, door, gate, size of the body, disconnect, problems, log: each call
    front       what a wire format may use: the scorer, its limits, the services behind it
    app         the routes of all formats
    listener    uvicorn on the server's event loop, with its TLS files
    problems    errors as problem details (RFC 9457), and the table of statuses
    native ...  one module a wire format: `routes(front)`, pure `read` and `answer` functions

Nothing here judges, and nothing is counted twice: one call of HTTP is one call of the gate, one
line of the log, one batch of the scorer.
"""
