"""Why an episode ended, and what that says about its reward. Pure."""

from __future__ import annotations

from enum import StrEnum


class Ending(StrEnum):
    """Why an episode ended.

    | ending        | who        | reward trusted | in the batch |
    |---------------|------------|----------------|--------------|
    | answered      | the policy | yes            | yes          |
    | turn-limit    | the policy | yes            | yes          |
    | token-limit   | the policy | yes            | yes          |
    | budget-spent  | the policy | yes            | yes          |
    | time-limit    | nobody     | no             | no           |
    | fault         | we         | no             | no           |
    | abandoned     | the run    | no             | no           |

    `answered`: the environment is done, or the policy called no tool. `budget-spent`: a program of
    the policy used up its session's budget, and no tool can run any more. `time-limit`: of the
    episode's seconds, which a busy machine takes as well as a slow policy.
    """

    ANSWERED = "answered"
    TURN_LIMIT = "turn-limit"
    TOKEN_LIMIT = "token-limit"  # noqa: S105  # no password
    BUDGET_SPENT = "budget-spent"
    TIME_LIMIT = "time-limit"
    FAULT = "fault"
    ABANDONED = "abandoned"

    @property
    def trusted(self) -> bool:
        """Whether the reward says something about the policy."""
        return self not in _OURS

    @property
    def trains(self) -> bool:
        """Whether the episode goes into the batch; a setting may leave out more."""
        return self.trusted


_OURS = frozenset({Ending.TIME_LIMIT, Ending.FAULT, Ending.ABANDONED})
