"""The engine for a model on any OpenAI-compatible server: vLLM, SGLang, llama.cpp, a hosted one.

The server's abilities are found at the start (`offer`), and requests take the most exact way that
they allow (`asking`): exact log-probabilities of any options (vLLM), verdicts of one token (chat
completions with log-probabilities), or text, from which judges take votes (chat alone).

The server reads special tokens wherever they stand, so look-alikes in data are broken up first
(`texts`). context_tokens is 0 where neither server nor settings say it.
"""

from assay.genrm.engines.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
