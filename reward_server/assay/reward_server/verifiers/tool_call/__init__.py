"""The verifier `tool-call`: which tools a response calls, in whatever format its model writes."""

from assay.reward_server.verifiers.tool_call.verifier import tool_call as tool_call
