"""HTTP/JSON beside gRPC, for any service: a listener, a middleware, and faces that plug in.

    middleware  request id, token, gate, size of the body, disconnect, problems, log: each call
    front       what a face may use: settings, deadlines, the caller's quota
    faces       sets of routes with their OpenAPI; those that plug in
    app         the routes of all faces, inside the middleware
    listener    uvicorn on the server's event loop, with its TLS files
    codec       JSON in and out, as strict as the contract
    problems    errors as problem details (RFC 9457), and the table of statuses
    openapi, operations, pages, probes, streams

One HTTP call is one call of the gate, one line of the log, one batch of the service.
"""
