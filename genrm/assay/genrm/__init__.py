"""Model-based rewards: generative judges, reward heads, process rewards, self-verification.

domain      items, settings, and what a run of a judge is
engines     what runs a model, behind one interface: transformers, vllm, openai
templates   versioned prompts; the candidate's text is fenced
judges      from an item to requests, from answers to a judgement: pure
steps       a response's steps and their scores: pure
handler     items on the kit's batch service
runner      the methods of the contract
service     the gRPC services; convert, config, server
rendering   rows in tokens, for whoever trains a judge
labelling   `assay label-code`
"""
