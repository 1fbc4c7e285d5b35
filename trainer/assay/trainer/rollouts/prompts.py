"""The endless stream of prompts, the same on every process.

It passes over all problems again and again, each time in an order fixed by the seed; over sources
with weights see data/mixture.py. A longer order begins with the shorter, so a run that is resumed,
or extended, continues where it was; the number of draws is its whole state.

A selector (assay.trainer.selection) may choose the problems instead, from the results of earlier
steps. Then each draw is saved, as an integer.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from statistics import fmean
from typing import Any

import numpy as np

from assay.kit.errors import ConfigError
from assay.trainer.data.mixture import Mixture
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw
from assay.trainer.rollouts.dynamic import CORRECT
from assay.trainer.rollouts.types import KnownGroup, OneRank, Ranks, Rollout
from assay.trainer.selection.types import Seen, Selector

# Above so many problems, only the longest are encoded before the run, and the latest are kept.
_CHECKED = 20_000
_KEPT_PASSES = 4
FORMS = 2**48
"""Draw n in its problem's form l has the number n + l * FORMS, and random numbers of its own."""


class PromptStream:
    """Draws problems; not thread-safe.

    Args:
        problems: at least one.
        encode: a problem's rendered prompt as tokens; pure.
        max_prompt_tokens: the longest prompt that leaves room for a response; 0 for no limit.
        selector: chooses the next problem; None for all in turn.
        forms: how many other forms a problem has, and what makes form 1, 2 and so on. See `again`.
        mixture: the order over sources with weights; None for one source.

    Raises:
        ConfigError: there are no problems.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        encode: Callable[[Problem], Sequence[int]],
        *,
        seed: int,
        max_prompt_tokens: int = 0,
        selector: Selector | None = None,
        forms: tuple[int, Callable[[Problem, int], Problem]] | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        if not problems:
            raise ConfigError("there are no training problems; give more data")
        self.problems = tuple(problems) if isinstance(problems, list) else problems
        self._mixture = mixture
        self._encode = encode
        self._seed = seed
        self._max_prompt_tokens = max_prompt_tokens
        self.selector = selector
        self._forms, self._form = forms or (0, _same)
        self._chosen: list[int] = []
        self._counts: Counter[int] = Counter()
        self._plan: Iterator[int] | None = None
        self._cursor = 0
        self._digest = ""
        self._prompt_ids = lru_cache(maxsize=_CHECKED)(self._encoded)
        self._pass = lru_cache(maxsize=_KEPT_PASSES)(self._shuffled)

    @property
    def cursor(self) -> int:
        """The number of the next draw, and of all taken."""
        return self._cursor

    def take(self, count: int) -> list[Draw]:
        """The next draws, in order; raises as `draw`."""
        draws = [self.draw(number) for number in range(self._cursor, self._cursor + count)]
        self._cursor += count
        return draws

    def give_back(self, count: int) -> None:
        """Returns the latest `count` draws unused; they come again.

        Raises:
            ValueError: so many have not been taken.
        """
        if not 0 <= count <= self._cursor:
            raise ValueError(f"{count} draws cannot be given back: {self._cursor} were taken")
        self._cursor -= count

    def draw(self, number: int) -> Draw:
        """The draw of this number, taken or not, in the number's form; the cursor stays.

        Raises:
            ConfigError: its prompt is longer than the limit, or empty.
        """
        form, bare = divmod(number, FORMS)
        chosen = self._place(bare) + form * len(self.problems)
        return Draw(number, self._problem(chosen), self._prompt_ids(chosen), form)

    def again(self, draw: Draw) -> Draw | None:
        """The same problem's draw in its next form; None where there is none. Raises as `draw`."""
        if draw.hint == self._forms or not draw.problem.solution:
            return None
        return self.draw(draw.number + FORMS)

    def learn(self, groups: Sequence[KnownGroup], ranks: Ranks | None = None) -> dict[str, float]:
        """Ends a step: the selector learns from it; draws given back are chosen anew.

        `groups` are of all draws since the last call, on all processes, in their first form; by
        default there is one process. Gives metrics of the choice; none without a selector.
        """
        if self.selector is None:
            return {}
        places = [self._chosen[group[0].request.draw.number] for group in groups]
        seen = seen_of(groups, places, self.selector, ranks or OneRank())
        expected = [self.selector.estimate(one.place) for one in seen]
        known = [value for value in expected if value is not None]
        self.selector.learn(seen)
        del self._chosen[self._cursor :]
        self._plan = None
        drawn = self._chosen[self._counts.total() :]
        self._counts.update(drawn)
        metrics = choice_metrics(self._counts.values(), len(self.problems))
        return metrics | ({"selection_estimate": fmean(known)} if known else {})

    def check(self) -> None:
        """Encodes the problems once, to find prompts that do not fit before training.

        Of more than 20,000 problems it takes the 20,000 with the longest texts, which takes
        seconds; the others are checked when drawn. Raises as `draw`.
        """
        places: Iterable[int] = range(len(self.problems))
        if len(self.problems) > _CHECKED:
            longest_first = sorted(places, key=lambda n: -_text_length(self.problems[n]))
            places = longest_first[:_CHECKED]
        most = self._forms * len(self.problems)
        for place in places:
            self._prompt_ids(place)
            if self._forms and self.problems[place].solution:
                self._prompt_ids(place + most)

    def state_dict(self) -> dict[str, Any]:
        """The position and what the stream draws from, as plain values."""
        state = {"cursor": self._cursor, **self._fingerprint()}
        if self.selector is not None:
            chosen = self._chosen[: self._cursor]
            state["selection"] = {"chosen": chosen, "learned": self.selector.state_dict()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict`.

        Raises:
            ConfigError: it was a stream over other problems, or in another order.
        """
        for name, mine in self._fingerprint().items():
            if state[name] != mine:
                raise ConfigError(
                    "the checkpoint was made with other training data: "
                    f"{state['problems']} problems in the order of data.seed {state['seed']}, this "
                    f"run has {len(self.problems)} in that of {self._seed}"
                    + (", and they differ" if name == "digest" else "")
                    + "; resume with the data and data.seed it was made with, or start a new run"
                )
        if ("selection" in state) != (self.selector is not None):
            raise ConfigError(
                "the checkpoint was made with another data.selection.name; resume with the one it "
                "was made with, or start a new run"
            )
        self._cursor = state["cursor"]
        if self.selector is not None:
            self._chosen, self._plan = list(state["selection"]["chosen"]), None
            self._counts = Counter(self._chosen)
            self.selector.load_state_dict(state["selection"]["learned"])

    def _fingerprint(self) -> dict[str, Any]:
        if not self._digest:
            digest = hashlib.sha256()
            for problem in self.problems:
                identity: tuple[object, ...] = (problem.id, problem.messages, problem.reference)
                identity += tuple(
                    extra for extra in (problem.anchor, problem.tests, problem.row) if extra
                )
                digest.update(repr(identity).encode())
            if self._mixture is not None:
                digest.update(repr(self._mixture.weights).encode())
            self._digest = digest.hexdigest()
        return {"problems": len(self.problems), "seed": self._seed, "digest": self._digest}

    def _place(self, number: int) -> int:
        if self.selector is None and self._mixture is not None:
            return self._mixture.place(number)
        if self.selector is None:
            one_pass, rest = divmod(number, len(self.problems))
            return self._pass(one_pass)[rest]
        if self._plan is None:
            self._plan = self.selector.order(len(self._chosen))
        self._chosen += islice(self._plan, max(0, number + 1 - len(self._chosen)))
        return self._chosen[number]

    def _problem(self, place: int) -> Problem:
        """The problem of a place: p + l * n is problem p of n in form l."""
        level, bare = divmod(place, len(self.problems))
        problem = self.problems[bare]
        return self._form(problem, level) if level else problem

    def _shuffled(self, one_pass: int) -> list[int]:
        order = list(range(len(self.problems)))
        random.Random(f"{self._seed}-{one_pass}").shuffle(order)  # noqa: S311  # no secret
        return order

    def _encoded(self, place: int) -> tuple[int, ...]:
        problem = self._problem(place)
        ids = tuple(self._encode(problem))
        if not ids:
            raise ConfigError(
                f"the prompt of problem {problem.id} has no tokens; check data.template and the "
                "tokenizer's chat template"
            )
        if 0 < self._max_prompt_tokens < len(ids):
            raise ConfigError(
                f"the prompt of problem {problem.id} has {len(ids)} tokens, but the model's context"
                f" leaves {self._max_prompt_tokens} beside rollout.max_new_tokens; lower "
                "rollout.max_new_tokens, take out the problem, or use a model with a longer context"
            )
        return ids


def _same(problem: Problem, _form: int) -> Problem:
    return problem


def seen_of(
    groups: Sequence[KnownGroup], places: Sequence[int], selector: Selector, ranks: Ranks
) -> list[Seen]:
    """What a selector learns from groups at these places; each is measured by its holder."""
    measured = np.zeros(len(groups))
    if selector.measure is not None:
        whole = [
            (n, [one for one in group if isinstance(one, Rollout)])
            for n, group in enumerate(groups)
        ]
        own = [
            (n, selector.measure([one.response.ids for one in group if one.result.judgement]))
            for n, group in whole
            if group
        ]
        for n, value in ranks.gather(np.array(own, np.float64).reshape(len(own), 2)):
            measured[int(n)] = value
    seen = []
    for group, place, value in zip(groups, places, measured.tolist(), strict=True):
        judged = [one.result.judgement for one in group if one.result.judgement is not None]
        rewards = tuple(judgement.reward for judgement in judged)
        correct = sum(judgement.verdict == CORRECT for judgement in judged)
        seen.append(Seen(place, rewards, correct, value))
    return seen


def choice_metrics(counts: Collection[int], problems: int) -> dict[str, float]:
    """How evenly problems were drawn so far, from the number of draws of each problem drawn."""
    drawn = sum(counts) or 1
    entropy = -sum(n / drawn * math.log(n / drawn) for n in counts)
    return {
        "selection_entropy": entropy / math.log(problems) if problems > 1 else 1.0,
        "selection_reached": len(counts) / problems,
    }


def _text_length(problem: Problem) -> int:
    return sum(len(content) for _, content in problem.messages)
