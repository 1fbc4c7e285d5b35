"""Model-based rewards: generative judges, reward heads, process rewards, self-verification.

domain      the nouns: items, settings, judgements, faults
engines     what runs a model, behind one small interface: transformers, vllm, openai
templates   versioned prompts, and what fences the candidate's text
judges      from an item to requests, from answers to a judgement: pure
steps       steps of a response, their scores, and how they come together: pure
runner      drives judges: admission, deadlines, faults
service     the gRPC rim, with convert, config, server
training    `assay train-rm`: pairwise, Bradley-Terry and process reward models
"""
