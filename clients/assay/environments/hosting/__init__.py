"""Somebody else's reward behind our reward server: `--verifier NAME=FILE.py:OBJECT`.

    from assay.environments.hosting import host_function
    from their_rewards import format_reward

    shaped = host_function(format_reward)

What comes out has TRL's shape, and the reward server runs it in its workers.
"""

from assay.environments.hosting.hosted import Hosted, HostedSample
from assay.environments.hosting.nemo_gym import host_nemo_gym
from assay.environments.hosting.openenv import host_openenv
from assay.environments.hosting.rubric import host_rubric
from assay.environments.hosting.taskset import host_taskset
from assay.environments.hosting.trl import host_function

__all__ = [
    "Hosted",
    "HostedSample",
    "host_function",
    "host_nemo_gym",
    "host_openenv",
    "host_rubric",
    "host_taskset",
]
