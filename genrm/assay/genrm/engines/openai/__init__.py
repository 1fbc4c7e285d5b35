"""The engine for a model on any OpenAI-compatible server: vLLM, SGLang, llama.cpp, a hosted one.

What the server offers is found at the start (`offer`), and requests take the most exact way that
it allows (`asking`). vLLM gives all: exact log-probabilities of any options, continued answers,
classification and step heads. A server with chat completions and log-probabilities gives verdicts
of one token. One with chat alone gives text, from which judges take votes.

What it is not: the server renders and tokenises. It reads special tokens wherever they stand, so
look-alikes in data are broken up first (`texts`); the in-process engines keep the text as it is.

context_tokens is 0 where the server does not say it and the settings do not either.
"""

from assay.genrm.engines.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
