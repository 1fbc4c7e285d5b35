"""`spy`: "spot the spy", a dialogue game for self-play, with a referee that is a rule.

After Vision-Zero (arXiv 2509.25541), in words instead of pictures. With v the share of votes that
each player got, v_c its mean over n civilians, d = v_spy - v_c: the spy earns -beta d, civilian j
beta d / n - lam (v_j - v_c), which sums to 0; a voter 1 if right, `unsure` for "n/a", else `wrong`
(equation 4: 1, -0.5, -1). beta, lam, breach and the defaults are ours.
docs/use/environments-shipped.md has rows, phases and the game of two.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.clients.faults import make_fault
from assay.environments.environment import Environment, Proof, Row
from assay.environments.shipped.answers import said, tagged, without_tags
from assay.environments.shipped.memory import CONTROL
from assay.environments.shipped.self_play import leaks
from assay.environments.types import EpisodeMessage, Observation, Reply
from assay.kit.reasons import Reason

SPY, CIVILIAN, VOTER = "spy", "civilian", "voter"
SpyPhase = Literal["clues", "votes", "both"]
PHASES = ("clues", "votes", "both")
_RULES = (
    "You play spot the spy with {others}. You are player {seat} of {players}. {holding} In turn, "
    "each player gives a clue to the word it holds: at most {words} words, true of that word, "
    "without saying it. {aim} Write your clue between <clue> and </clue>."
)
_VOTE = (
    "You are player {seat} of {players} in spot the spy. Your word: {word}. All players hold it "
    "but one, the spy. By the clues below, who is the spy? Write the player's number between "
    "<vote> and </vote>."
)
_UNSURE = ' Write "n/a" there if nobody can tell.'
_VOTE_OF_TWO = (
    "You are player {seat} of 2. Your word: {word}. By the clues below, does the other player hold "
    'the same word or another? Write "same" or "different" between <vote> and </vote>.'
)


@dataclass(frozen=True, slots=True)
class SpySettings:
    """Settings of `spy`.

    Attributes:
        players: 2 to 12, one of them the spy.
        rounds: of clues.
        clue_words: of a clue, at most.
        phase: "clues", "votes" or "both"; see the module.
        beta: what the spy and the civilians play for.
        lam: what suspicion costs a civilian beside another.
        breach: what a clue against the rules costs.
        unsure: what a vote "n/a" earns; at least `wrong`, and offered where it is more.
        wrong: what any other vote earns that is not right; at most 1, as `unsure`.
    """

    players: int = 3
    rounds: int = 1
    clue_words: int = 20
    phase: SpyPhase = "both"
    beta: float = 1.0
    lam: float = 1.0
    breach: float = 1.0
    unsure: float = 0.0
    wrong: float = 0.0

    def __post_init__(self) -> None:
        if not 2 <= self.players <= 12:
            raise ValueError("players is 2 to 12")
        if min(self.rounds, self.clue_words) < 1:
            raise ValueError("rounds and clue_words are at least 1")
        if self.phase not in PHASES:
            raise ValueError(f"phase is {self.phase!r}; there are: {', '.join(PHASES)}")
        if min(self.beta, self.lam, self.breach) < 0:
            raise ValueError("beta, lam and breach are at least 0")
        if not self.wrong <= self.unsure <= 1:
            raise ValueError("wrong <= unsure <= 1 is not so")


@dataclass(frozen=True, slots=True)
class SpyDeal:
    """Who sits where, and with which word.

    Attributes:
        words: of each seat, from 0.
        spy: the spy's seat.
    """

    words: tuple[str, ...]
    spy: int

    @property
    def agents(self) -> list[str]:
        """The agent of each seat."""
        before = [seat for seat in range(len(self.words)) if seat != self.spy]
        names = {seat: f"{CIVILIAN}#{number}" for number, seat in enumerate(before, start=1)}
        return [names.get(seat, SPY) for seat in range(len(self.words))]

    @property
    def civilians(self) -> list[int]:
        """The seats of the civilians."""
        return [seat for seat in range(len(self.words)) if seat != self.spy]


def deal(row: Row, players: int) -> SpyDeal:
    """The seats of a row: the same whenever it is dealt.

    Raises:
        ValueError: its words are no two different texts.
    """
    words = row.get("words")
    if (
        not isinstance(words, Sequence)
        or isinstance(words, str)
        or len(words) != 2
        or not all(isinstance(one, str) and one.strip() for one in words)
        or words[0] == words[1]
    ):
        raise ValueError("the row's words are no two different texts")
    seed = f"{words[0]}\n{words[1]}\n{row.get('seed', 0)}"
    draw = random.Random(hashlib.sha256(seed.encode("utf-8", "replace")).digest())  # noqa: S311
    spy = draw.randrange(players)
    other = words[1]
    same = draw.random() < 0.5
    if players == 2 and bool(row.get("same", same)):
        other = words[0]
    held = [words[0]] * players
    held[spy] = other
    return SpyDeal(tuple(held), spy)


def payoffs(
    seats: SpyDeal, votes: Mapping[int, int], settings: SpySettings, breaches: Sequence[int] = ()
) -> list[float]:
    """What each seat's clues earn; the sum is 0.

    Args:
        seats: the deal.
        votes: of civilians, by seat: the seat that each suspects; of two players, the spy's seat
            for "different" and its own for "same". A seat without a vote suspects nobody.
        settings: of the game.
        breaches: the seat of each clue against the rules.
    """
    civilians = seats.civilians
    count = len(civilians)
    earned = [0.0] * len(seats.words)
    if len(seats.words) == 2:
        [own] = civilians
        won = settings.beta if _is_right(seats, own, votes.get(own)) else -settings.beta
        earned[own], earned[seats.spy] = won, -won
    else:
        share = [
            sum(vote == seat for vote in votes.values()) / count for seat in range(len(earned))
        ]
        mean = sum(share[seat] for seat in civilians) / count
        gap = share[seats.spy] - mean
        earned[seats.spy] = -settings.beta * gap + 0.0
        for seat in civilians:
            earned[seat] = settings.beta * gap / count - settings.lam * (share[seat] - mean)
    for breaker in breaches:
        for seat in range(len(earned)):
            others = len(earned) - 1
            earned[seat] += -settings.breach if seat == breaker else settings.breach / others
    return earned


def _is_right(seats: SpyDeal, voter: int, vote: int | None) -> bool:
    if len(seats.words) > 2 or seats.words[0] != seats.words[1]:
        return vote == seats.spy
    return vote == voter


class SpyGame(Environment):
    """Spot the spy: players of one policy give clues, and vote."""

    name = "spy"
    needs = ("words",)
    Settings = SpySettings
    settings: SpySettings
    repeatable = True

    @classmethod
    def proofs(cls, settings: SpySettings) -> Sequence[Proof]:
        """All votes for the spy, and none: what the first player earns."""
        row = {"prompt": "", "words": ["harp", "lute"], "seed": 1, "same": False}
        dealt = deal(row, settings.players)
        clues = [
            f"<clue>strings, heard in round {number} of {seat}</clue>"
            for number in range(settings.rounds)
            for seat in range(settings.players)
        ]
        caught = f"<vote>{'different' if settings.players == 2 else dealt.spy + 1}</vote>"
        proofs = []
        for vote, guess in ((caught, dealt.spy), ("I cannot say", None)):
            votes = {} if guess is None else dict.fromkeys(dealt.civilians, guess)
            breaches = [] if settings.clue_words >= 7 else list(range(settings.players))
            first = payoffs(dealt, votes, settings, breaches * settings.rounds)[0]
            turns = [*clues, *[vote] * len(dealt.civilians)]
            proofs.append(Proof(row, turns, 0.0 if settings.phase == "votes" else first))
        return proofs

    def reset(self, row: Row) -> Observation:
        """The first player's word; ValueError for a row without two words."""
        self._phase = row.get("phase", self.settings.phase)
        if self._phase not in PHASES:
            raise ValueError(f"the row's phase is no one of {', '.join(PHASES)}")
        self._deal = deal(row, self.settings.players)
        self._words = (str(row["words"][0]), str(row["words"][1]))
        self._clues: list[tuple[int, str]] = []
        self._read = [0] * self.settings.players
        self._breaches: list[int] = []
        self._votes: dict[int, int] = {}
        self._unsure: set[int] = set()
        self._asked: list[int] = []
        self._pending: int | None = None
        return self._clue_wanted(0)

    def answered(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Any:
        """There are no tools: what a turn with calls says counts as it stands."""
        del answers
        return self.turn(turn) or Observation(())

    def turn(self, turn: Reply) -> Observation | None:
        """A clue or a vote."""
        players, rounds = self.settings.players, self.settings.rounds
        if len(self._clues) < players * rounds:
            self._take_clue(turn)
            if len(self._clues) < players * rounds:
                return self._clue_wanted(len(self._clues) % players)
        else:
            self._take_vote(turn)
        waiting = [seat for seat in self._deal.civilians if seat not in self._asked]
        return self._vote_wanted(waiting[0]) if waiting else None

    def reward(self) -> Any:
        """See the module, by agent."""
        civilians = self._deal.civilians
        done = len(self._clues) == self.settings.players * self.settings.rounds
        if not done or len(self._asked) < len(civilians) or self._pending is not None:
            text = "the episode's limits ended the game before the last vote: allow more"
            return make_fault(Reason.EPISODE_CUT, text)
        earned = payoffs(self._deal, self._votes, self.settings, self._breaches)
        rewards = dict(zip(self._deal.agents, earned, strict=True))
        if self._phase == "votes":
            rewards = dict.fromkeys(rewards, 0.0)
        for number, seat in enumerate(civilians, start=1):
            rewards[f"{VOTER}#{number}"] = self._voted(seat) if self._phase != "clues" else 0.0
        return rewards

    def _voted(self, seat: int) -> float:
        if _is_right(self._deal, seat, self._votes.get(seat)):
            return 1.0
        return self.settings.unsure if seat in self._unsure else self.settings.wrong

    def _take_clue(self, turn: Reply) -> None:
        seat = len(self._clues) % self.settings.players
        text = without_tags(tagged(said(turn), "clue") or "", *CONTROL, "clue", "vote")
        clue = " ".join(text.split())
        given = {one.casefold() for _, one in self._clues}
        broken = (
            not clue
            or len(clue.split()) > self.settings.clue_words
            or len(clue) > 20 * self.settings.clue_words
            or clue.casefold() in given
            or leaks(clue, self._deal.words[seat])
        )
        if broken:
            self._breaches.append(seat)
        self._clues.append((seat, "" if broken else clue))

    def _take_vote(self, turn: Reply) -> None:
        seat = self._asked[-1]
        self._pending = None
        vote = (tagged(said(turn), "vote") or "").strip().casefold()
        if vote == "n/a":
            self._unsure.add(seat)
        if self.settings.players == 2:
            known = {"same": seat, "different": self._deal.spy}
        else:
            known = {str(one + 1): one for one in range(self.settings.players) if one != seat}
        if vote in known:
            self._votes[seat] = known[vote]

    def _clue_wanted(self, seat: int) -> Observation:
        agent = self._deal.agents[seat]
        told = self._told(self._clues[self._read[seat] :])
        first = len(self._clues) < self.settings.players
        self._read[seat] = len(self._clues)
        self._pending = seat
        if not first:
            return Observation.user(f"{told}\n\nYour next clue?", agent=agent, context=agent)
        rules = EpisodeMessage("system", self._rules(seat))
        begun = EpisodeMessage("user", f"{told}\n\nYour clue?" if told else "You begin. Your clue?")
        return Observation((rules, begun), agent, agent, tools=())

    def _rules(self, seat: int) -> str:
        settings, word = self.settings, self._deal.words[seat]
        two = settings.players == 2
        holding = f"Your word: {word}."
        if seat != self._deal.spy:
            aim = "Find out whether the other holds your word." if two else (
                "All players hold this word but one, the spy: show that you are none, and find it."
            )  # fmt: skip
        elif two:
            holding += f" The other's word: {self._words[0]}."
            aim = "You are the spy: whether your words are the same, make the other think not so."
        else:
            aim = "You are the spy: the others hold a word like yours. Be taken for one of them."
        return _RULES.format(
            others="another player" if two else f"{settings.players - 1} other players",
            seat=seat + 1,
            players=settings.players,
            holding=holding,
            words=settings.clue_words,
            aim=aim,
        )

    def _vote_wanted(self, seat: int) -> Observation:
        self._asked.append(seat)
        self._pending = seat
        text = _VOTE_OF_TWO if self.settings.players == 2 else _VOTE
        rules = text.format(
            seat=seat + 1, players=self.settings.players, word=self._deal.words[seat]
        ) + (_UNSURE if self.settings.unsure > self.settings.wrong else "")
        agent = f"{VOTER}#{len(self._asked)}"
        messages = (
            EpisodeMessage("system", rules),
            EpisodeMessage("user", self._told(self._clues)),
        )
        return Observation(messages, agent, agent, tools=())

    def _told(self, clues: Sequence[tuple[int, str]]) -> str:
        return "\n".join(
            f'Player {seat + 1}: "{clue}"' if clue else f"Player {seat + 1}: (no clue)"
            for seat, clue in clues
        )
