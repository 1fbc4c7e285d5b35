"""OpenAI's graders, over the reward server."""
