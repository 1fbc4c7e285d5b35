"""The reward function for OpenRLHF (0.11); `openrlhf_grpo.sh` beside this names the file.

Run in the tests: loaded from this file as OpenRLHF loads it, and called with its arguments, against
a real server; in `make test-adapters` by OpenRLHF's own rollout executor.
"""

from assay.clients.trainers.openrlhf import reward_func

__all__ = ["reward_func"]
