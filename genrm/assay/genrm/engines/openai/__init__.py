"""The engine for a model on any OpenAI-compatible server: vLLM, SGLang, llama.cpp, a hosted one.

The server's abilities are found at the start (`offer`), and requests take the most exact way that
they allow (`asking`): vLLM gives exact log-probabilities of any options, continued answers,
classification and step heads; chat completions with log-probabilities give verdicts of one token;
chat alone gives text, from which judges take votes.

The server renders and tokenises, and reads special tokens wherever they stand, so look-alikes in
data are broken up first (`texts`). context_tokens is 0 where neither server nor settings say it.
"""

from assay.genrm.engines.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
