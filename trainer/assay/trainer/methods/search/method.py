"""An evaluation by a search that the critic guides (ReST-RL, arXiv 2508.19576).

The value of a state is the critic's behind its last token; of a response that ended, in front of
the token that ended it, where the critic learned it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from assay.kit.errors import ConfigError
from assay.trainer.core.answering import engine_of_run, evaluation_sampling
from assay.trainer.core.batch import filled
from assay.trainer.core.build import encoder
from assay.trainer.core.evaluation import Evaluation, answer_of, end_token_ids, requests_of
from assay.trainer.core.rewards import EVALUATION
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.search.nodes import SearchTree, Tokens
from assay.trainer.methods.search.settings import SearchConfig
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.types import Rollout

NAME = "search"
TURN = 2**20
"""Random numbers of searched responses are those of this turn."""
States = Sequence[tuple[Tokens, Tokens]]
"""Prompts, and the tokens behind them."""


class GuidedSearch(RunHooks):
    """Answers the held-out prompts by a search, too."""

    def check_processes(self, processes: int) -> None:
        """See Hooks."""
        if processes > 1:
            raise ConfigError(
                f"method.search searches in one process, not in {processes}; set "
                "method.search.iterations = 0"
            )

    def also(self, session: RunSession, trainer: PolicyTrainer) -> Mapping[str, Evaluation]:
        """See RunHooks: the answers that the critic likes best, and what they took.

        With one response to a prompt its sampling is that of several: `eval.temperature`.
        """
        config, policy = session.config, session.policy
        engine = engine_of_run(trainer, config, policy)
        sampling = evaluation_sampling(config, 2)
        searcher = Searcher(
            config.method.search,
            Sampler(engine, sampling),
            lambda states: state_values(trainer, states, end_token_ids(policy)),
            lambda ids: str(policy.tokenizer.decode(list(ids), skip_special_tokens=True)),
        )
        requests = requests_of(session.problems.eval, encoder(policy), 1)
        session.display.begin(NAME, len(requests))
        responses = searcher.answers(requests, session.display.advance)
        session.display.end()
        scoring = session.judge.open_round(1, EVALUATION)
        for request, response in zip(requests, responses, strict=True):
            scoring.submit(request, response)
        judged = zip(requests, responses, scoring.results(), strict=True)
        answers = [answer_of(Rollout(*one, policy_step=0)) for one in judged]
        spent = {
            "search_tokens": searcher.tokens / len(requests),
            "search_responses": searcher.responses / len(requests),
        }
        return {NAME: Evaluation(tuple(answers), turns=spent)}


def state_values(
    trainer: PolicyTrainer, states: States, ends: frozenset[int], rows: int = 64
) -> list[float]:
    """The critic's value behind the last token of each state; see above."""
    critic = trainer.critic
    if critic is None:
        raise ValueError("there is no critic")
    filler = min(ends)
    behind = [ids if ids[-1] in ends else (*ids, filler) for _, ids in states]
    prompts = [prompt for prompt, _ in states]
    found: list[float] = []
    for first in range(0, len(states), rows):
        asked, told = prompts[first : first + rows], behind[first : first + rows]
        batch = {
            "prompt_ids": filled(asked, filler, torch.long, left=True),
            "prompt_mask": filled([[1] * len(one) for one in asked], 0, torch.long, left=True),
            "completion_ids": filled(told, filler, torch.long),
            "completion_mask": filled([[1] * len(one) for one in told], 0, torch.long),
        }
        device = trainer.accelerator.device
        batch = {name: column.to(device) for name, column in batch.items()}
        values_BT = critic.values(batch, [torch.arange(len(told), device=device)])
        found += [float(values_BT[row, len(one) - 1]) for row, one in enumerate(told)]
    return found


@dataclass(slots=True)
class Searcher:
    """Searches one response to each prompt.

    Attributes:
        values: of states, none of them empty.
        decode: tokens to text, without special ones.
        tokens: drawn so far.
        responses: written so far.
    """

    config: SearchConfig
    sampler: Sampler
    values: Callable[[States], Sequence[float]]
    decode: Callable[[Tokens], str]
    tokens: int = 0
    responses: int = 0

    def answers(
        self, requests: Sequence[Request], on_progress: Callable[[int], None]
    ) -> list[Response]:
        """The response to each request that the values like best."""
        found: list[Response] = []
        size = self.config.problems
        for first in range(0, len(requests), size):
            found += self._searched(requests[first : first + size])
            on_progress(len(found))
        return found

    def _searched(self, requests: Sequence[Request]) -> list[Response]:
        trees = [SearchTree(self.config) for _ in requests]
        known: list[dict[Tokens, Response]] = [{} for _ in requests]
        for number in range(self.config.iterations):
            self._round(requests, trees, known, number * self.config.samples)
        return [
            own[tree.best[1]]
            for tree, own in zip(trees, known, strict=True)
            if tree.best is not None
        ]

    def _round(
        self,
        requests: Sequence[Request],
        trees: Sequence[SearchTree],
        known: Sequence[dict[Tokens, Response]],
        first: int,
    ) -> None:
        """One round of every tree, whose responses have the indices from `first` on."""
        chosen = [tree.select() for tree in trees]
        for tree, node in zip(trees, chosen, strict=True):
            if node.ended:
                tree.revisit(node)
        going = [place for place, node in enumerate(chosen) if not node.ended]
        count = self.config.samples
        asked = [
            replace(requests[place], index=first + n, begun=_begun(chosen[place].ids), turn=TURN)
            for place in going
            for n in range(count)
        ]
        told = self.sampler.generate(asked, lambda _place, _response: None) if asked else []
        self.responses += len(told)
        written = []
        for number, response in enumerate(told):
            place = going[number // count]
            known[place].setdefault(response.ids, response)
            self.tokens += len(response.ids) - len(chosen[place].ids)
            written.append(self._first_line(response, len(chosen[place].ids)))
        prompts = [requests[going[number // count]].draw.prompt_ids for number in range(len(told))]
        states = [(prompt, one[0]) for prompt, one in zip(prompts, written, strict=True)]
        states += [(prompt, one[1]) for prompt, one in zip(prompts, written, strict=True)]
        values = list(self.values(states)) if states else []
        for number, place in enumerate(going):
            own = slice(number * count, (number + 1) * count)
            whole = values[len(written) :]
            trees[place].expand(chosen[place], written[own], values[own], whole[own])

    def _first_line(self, response: Response, start: int) -> tuple[Tokens, Tokens, bool]:
        """The next state of a response, its tokens, and whether the state ends it."""
        ids, separator = response.ids, self.config.separator
        ends = range(start + 1, len(ids) + 1)
        at = bisect.bisect_left(ends, True, key=lambda n: separator in self.decode(ids[start:n]))
        if at == len(ends) or not self.decode(ids[ends[at] :]).strip():
            return ids, ids, True
        return ids[: ends[at]], ids, False


def _begun(ids: Tokens) -> Response | None:
    """What a state's responses begin with; log-probabilities are not asked for."""
    return Response(ids, "", None, truncated=False, finished=False) if ids else None
