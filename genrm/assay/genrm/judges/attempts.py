"""Runs whose failure is a value: of one question among several, or of one model among several."""

from __future__ import annotations

from typing import TypeVar

from assay.genrm.domain import Attempt, Run
from assay.kit.faults import ItemFault, Unjudgeable

R = TypeVar("R")


def attempted(run: Run[R], model: str = "") -> Run[R | ItemFault]:
    """What the run returns, or why it could not.

    Its requests go to the model of this name; empty for the run's own. Requests that are attempts
    already stay as they are.
    """
    try:
        asked = next(run)
        while True:
            replies = yield tuple(
                one if isinstance(one, Attempt) else Attempt(one, model) for one in asked
            )
            for one, reply in zip(asked, replies, strict=True):
                if isinstance(reply, ItemFault) and not isinstance(one, Attempt):
                    return reply
            asked = run.send(replies)
    except StopIteration as end:
        returned: R = end.value
        return returned
    except Unjudgeable as error:
        return error.fault
    finally:
        run.close()
