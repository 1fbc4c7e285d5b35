"""Model-based rewards: generative judges, reward heads, process rewards, self-verification.

domain      the nouns: items, settings, judgements, faults
engines     what runs a model, behind one small interface: transformers, vllm, openai
templates   versioned prompts, and what fences the candidate's text
judges      from an item to requests, from answers to a judgement: pure
steps       steps of a response, their scores, and how they come together: pure
handler     items of judges for the kit's batch service: how one is run, written, counted
runner      the methods of the contract
service     the gRPC services, with convert, config, server
rendering   rows in tokens, for whoever trains a judge
labelling   `assay label-code`: lines of programs, by what a policy can make of them
"""
