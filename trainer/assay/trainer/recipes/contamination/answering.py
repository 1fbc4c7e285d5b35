"""The model's answers to each row, with what every token of them was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display
from assay.trainer.core.answering import standing_engine
from assay.trainer.core.build import encoder
from assay.trainer.data.columns import found_columns
from assay.trainer.data.problems import Problem, problem_of
from assay.trainer.data.sources import file_table
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.recipes.contamination.scores import Answered, RowAnswers
from assay.trainer.settings.config import Config
from assay.trainer.settings.method import RowNeeds

_NEEDS = RowNeeds(columns=("prompt",), who="an audit of contamination")
_CHUNK_T = 256  # tokens whose distributions are held at once, in float32
_SAMPLED = Sampling(0, temperature=0.8, top_p=0.95)  # CDD's, in the authors' code
_BEFORE, _BEHIND = "hello, what's your name?", "I'm fine, thank you."
ANOTHER = (
    "\n\nHere is an answer, which may be right or wrong:\n---\n{answer}\n---\nGive another one, "
    "that reasons along a different path or solves it in a different way:"
)
"""What asks for another way; the order is that of the authors' prompt, the words are ours."""


@dataclass(frozen=True, slots=True)
class SuspectRow:
    """A row to audit.

    Attributes:
        id: its own, else its number from 1.
        member: whether it was trained on, where the row says so.
    """

    id: str
    problem: Problem
    member: bool | None


def read_rows(path: Path, config: Config) -> tuple[list[SuspectRow], str]:
    """The rows of a .jsonl, .jsonl.gz or .parquet file, rendered by config.data; and its digest.

    Raises:
        ConfigError: it cannot be read, a row has no prompt, or a `member` is not true or false.
    """
    table = file_table(str(path))
    if not table.rows:
        raise ConfigError(f"{path} holds no rows")
    own = replace(config.data, source="jsonl", path=str(path))
    columns = found_columns(own, table.rows, str(path), _NEEDS.columns)
    own = replace(own, columns=replace(columns, reference="", tests="", anchor="", solution=""))
    found = []
    for number, row in enumerate(table.rows, 1):
        member = row.get("member")
        if not isinstance(member, bool | None):
            raise ConfigError(f"{path}, row {number}: 'member' is {member!r}, not true or false")
        id_ = str(row.get("id") or number)
        found.append(SuspectRow(id_, problem_of(row, own, id_, number, _NEEDS), member))
    return found, table.digest


class Respondent:
    """A model that answers, and whose distributions are read.

    Args:
        new_tokens: most of a first answer; a second may have twice as many, as published.
        room: most tokens of a prompt with its answer; 0 for no limit.
    """

    def __init__(
        self, config: Config, policy: LoadedPolicy, sampler: Sampler, *, new_tokens: int, room: int
    ) -> None:
        self._config, self._policy, self._sampler = config, policy, sampler
        self._new_tokens, self._room = new_tokens, room
        self._encode = encoder(policy)

    def answers(
        self, rows: Sequence[SuspectRow], *, first: int, perturbed: bool, samples: int
    ) -> list[RowAnswers]:
        """The answers to rows; `first` is the number of the first among all.

        Raises:
            ConfigError: a prompt leaves no room for an answer.
        """
        problems = [row.problem for row in rows]
        greedy = replace(_SAMPLED, temperature=0.0, top_p=1.0, max_new_tokens=self._new_tokens)
        firsts = self._asked(problems, greedy, first)
        others = [
            self._another(problem, response)
            for problem, (_, response) in zip(problems, firsts, strict=True)
        ]
        longer = replace(greedy, max_new_tokens=2 * self._new_tokens)
        seconds = self._asked(others, longer, first)
        between = [_between(problem) for problem in problems] if perturbed else []
        beside = self._asked(between, greedy, first)
        drawn = replace(_SAMPLED, max_new_tokens=self._new_tokens)
        sampled = self._asked(problems, drawn, first, samples)
        return [
            RowAnswers(
                first=self._read(*firsts[n]),
                second=self._read(*seconds[n]),
                perturbed=self._read(*beside[n]) if perturbed else None,
                samples=[one.ids for _, one in sampled[n * samples : (n + 1) * samples]],
            )
            for n in range(len(rows))
        ]

    def _asked(
        self, problems: Sequence[Problem], sampling: Sampling, first: int, samples: int = 1
    ) -> list[tuple[tuple[int, ...], Response]]:
        """Prompts and responses, `samples` of each problem."""
        requests = []
        for number, problem in enumerate(problems, first):
            ids = tuple(self._encode(problem))
            most = self._left(ids, problem.id)
            draw = Draw(number, problem, ids)
            requests += [Request(draw, index, most=most) for index in range(samples)]
        if not requests:
            return []
        self._sampler.sampling = replace(sampling, rows=self._config.eval.batch_size)
        responses = self._sampler.generate(requests, _unheard)
        return [
            (request.draw.prompt_ids, response)
            for request, response in zip(requests, responses, strict=True)
        ]

    def _left(self, ids: Sequence[int], id_: str) -> int:
        if not self._room:
            return 0
        if len(ids) >= self._room:
            raise ConfigError(
                f"row {id_}: its prompt of {len(ids)} tokens leaves the model, which reads "
                f"{self._room}, no room to answer"
            )
        return self._room - len(ids)

    def _another(self, problem: Problem, response: Response) -> Problem:
        """The problem with its answer, which is cut where two would not fit."""
        tokenizer = self._policy.tokenizer
        text = response.text
        if self._room:
            bare = len(self._encode(_behind(problem, ANOTHER.format(answer=""))))
            most = max(0, self._room - bare - self._new_tokens)
            if len(response.ids) > most:
                text = tokenizer.decode(response.ids[:most], skip_special_tokens=True)
        return _behind(problem, ANOTHER.format(answer=text))

    def _read(self, prompt: tuple[int, ...], response: Response) -> Answered:
        """What each token of a response was drawn from."""
        ids = torch.tensor([[*prompt, *response.ids]], device=self._policy.device)
        with torch.no_grad(), self._policy.autocast():
            logits_TV = self._policy.model(
                input_ids=ids, logits_to_keep=len(response.ids) + 1
            ).logits[0, :-1]
        read = [
            moments_of(some_TV, ids_T)
            for some_TV, ids_T in zip(
                logits_TV.split(_CHUNK_T),
                ids[0, len(prompt) :].split(_CHUNK_T),
                strict=True,
            )
        ]
        logprobs, entropies, squares = (
            tuple(torch.cat(one).tolist()) for one in zip(*read, strict=True)
        )
        return Answered(response.ids, logprobs, entropies, squares)


def moments_of(
    logits_TV: torch.Tensor, ids_T: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability of a token, entropy, and the expected square of log p; each (T,)."""
    logps_TV = logits_TV.double().log_softmax(dim=-1)
    chances_TV = logps_TV.exp()
    terms_TV = torch.where(chances_TV > 0, chances_TV * logps_TV, 0.0)
    squares_TV = torch.where(chances_TV > 0, terms_TV * logps_TV, 0.0)
    own_T = logps_TV.gather(1, ids_T[:, None]).squeeze(1)
    return own_T, -terms_TV.sum(dim=1), squares_TV.sum(dim=1)


def _behind(problem: Problem, text: str) -> Problem:
    (*before, (role, asked)) = problem.messages
    return replace(problem, messages=(*before, (role, asked + text)))


def _between(problem: Problem) -> Problem:
    (*before, (role, asked)) = problem.messages
    return replace(problem, messages=(*before, (role, f"{_BEFORE} {asked} {_BEHIND}")))


def _unheard(_place: int, _response: Response) -> None:
    pass


@contextmanager
def respondent(config: Config, policy: LoadedPolicy, new_tokens: int) -> Iterator[Respondent]:
    """A loaded model, with the configured engine open inside the block."""
    policy.model.eval()
    room: Any = getattr(policy.model.config, "max_position_embeddings", 0)
    with standing_engine(config, policy) as engine:
        sampler = Sampler(engine, replace(_SAMPLED, max_new_tokens=new_tokens))
        yield Respondent(config, policy, sampler, new_tokens=new_tokens, room=room or 0)


def answered_rows(
    one: Respondent,
    rows: Sequence[SuspectRow],
    *,
    done: int,
    display: Display,
    at_once: int,
    perturbed: bool,
    samples: int,
    keep: Callable[[SuspectRow, RowAnswers], None],
) -> None:
    """Answers rows from number `done` on, `at_once` together; passes each on with its answers."""
    for begin in range(done, len(rows), at_once):
        some = rows[begin : begin + at_once]
        for row, answers in zip(
            some,
            one.answers(some, first=begin, perturbed=perturbed, samples=samples),
            strict=True,
        ):
            keep(row, answers)
        display.advance(begin + len(some))
