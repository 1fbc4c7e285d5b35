"""Somebody else's reward behind our reward server: `--verifier NAME=FILE.py:OBJECT`.

The operator's file makes the object, with a function of this package:

    from assay.environments.hosting import host_function
    from their_rewards import format_reward

    shaped = host_function(format_reward)

The peer's library is imported by that file and by the modules beside this one. What comes out is a
reward function in TRL's shape, which the reward server runs in its workers.
"""

from assay.environments.hosting.hosted import Hosted, Sample
from assay.environments.hosting.nemo_gym import host_nemo_gym
from assay.environments.hosting.openenv import host_openenv
from assay.environments.hosting.rubric import host_rubric
from assay.environments.hosting.taskset import host_taskset
from assay.environments.hosting.trl import host_function

__all__ = [
    "Hosted",
    "Sample",
    "host_function",
    "host_nemo_gym",
    "host_openenv",
    "host_rubric",
    "host_taskset",
]
