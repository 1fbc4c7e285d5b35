"""The game `spy`: its deals, its payoffs as numbers, its referee, and its phases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.search_support import Played, find, play

from assay.environments import EpisodeLimits
from assay.environments.registry import settings_of
from assay.environments.shipped.spy import SpyDeal, SpyGame, SpySettings, deal, payoffs
from assay.kit.errors import ConfigError

ROW: dict[str, Any] = {"prompt": "", "words": ["harp", "lute"], "seed": 4}
FOUR = SpyDeal(("harp", "lute", "harp", "harp"), 1)


def clue(text: str) -> str:
    return f"<clue>{text}</clue>"


def voted(settings: SpySettings, votes: list[str], row: Any = ROW, **more: Any) -> Played:
    clues = [clue(f"strings {n}") for n in range(settings.players * settings.rounds)]
    return play(SpyGame(settings), row, [*clues, *votes], **more)


@pytest.mark.parametrize(
    ("votes", "earned"),
    [
        ({0: 1, 2: 1, 3: 1}, [1 / 3, -1.0, 1 / 3, 1 / 3]),  # all see the spy
        ({}, [0.0, 0.0, 0.0, 0.0]),
        # Shares: seat 0 has 2/3, the spy 1/3; the civilians' mean is 2/9, the gap 1/9.
        ({0: 1, 2: 0, 3: 0}, [1 / 27 - 4 / 9, -1 / 9, 1 / 27 + 2 / 9, 1 / 27 + 2 / 9]),
        # All votes on one civilian: the spy wins a third, who was suspected pays it and more.
        ({0: 3, 2: 3, 3: 0}, [-1 / 9, 1 / 3, 2 / 9, -4 / 9]),
    ],
)
def test_payoffs_of_four(votes: dict[int, int], earned: list[float]) -> None:
    assert payoffs(FOUR, votes, SpySettings(players=4)) == pytest.approx(earned)


def test_beta_and_lam_scale_what_is_played_for() -> None:
    settings = SpySettings(players=4, beta=3.0, lam=0.0)
    assert payoffs(FOUR, {0: 1, 2: 1, 3: 1}, settings) == pytest.approx([1.0, -3.0, 1.0, 1.0])


def test_a_breach_is_paid_to_the_others() -> None:
    paid = payoffs(FOUR, {}, SpySettings(players=4, breach=0.6), [2, 2])
    assert paid == pytest.approx([0.4, 0.4, -1.2, 0.4])


@pytest.mark.parametrize(
    ("is_same", "vote", "won"),
    [(False, "different", 1), (False, "same", -1), (False, "hm", -1),
     (True, "different", -1), (True, "Same ", 1)],
)  # fmt: skip
def test_two_players(is_same: bool, vote: str, won: int) -> None:
    done = voted(SpySettings(players=2), [f"<vote>{vote}</vote>"], {**ROW, "same": is_same})
    rewards = done.outcome.rewards
    assert rewards == {"civilian#1": won, "spy": -won, "voter#1": float(won > 0)}
    texts = {seen.agent: seen.messages[0].content for seen in done.seen}
    assert "lute" not in texts["civilian#1"] + texts["voter#1"]
    assert "The other's word: harp" in texts["spy"]


def test_deals_are_the_same_and_use_every_seat() -> None:
    deals = [deal({**ROW, "seed": seed}, 4) for seed in range(60)]
    assert deals == [deal({**ROW, "seed": seed}, 4) for seed in range(60)]
    assert {one.spy for one in deals} == {0, 1, 2, 3}
    pairs = [deal({**ROW, "seed": seed}, 2).words for seed in range(60)]
    assert 15 < sum(one == other for one, other in pairs) < 45


def test_votes_pay_the_voter_that_is_right() -> None:
    settings = SpySettings(players=4)
    seats = deal(ROW, 4)
    right = f"<vote>{seats.spy + 1}</vote>"
    own = f"<vote>{seats.civilians[1] + 1}</vote>"  # nobody may suspect itself
    done = voted(settings, [right, own, "<vote>99</vote>"])
    assert [done.outcome.rewards[f"voter#{n}"] for n in (1, 2, 3)] == [1.0, 0.0, 0.0]
    assert done.outcome.rewards["spy"] == pytest.approx(-1 / 3)


@pytest.mark.parametrize(
    ("phase", "clues", "votes"),
    [("clues", True, False), ("votes", False, True), ("both", True, True)],
)
def test_phases_leave_the_other_part_constant(phase: Any, clues: bool, votes: bool) -> None:
    settings = SpySettings(players=3, phase=phase)
    right = f"<vote>{deal(ROW, 3).spy + 1}</vote>"
    rewards = voted(settings, [right, right]).outcome.rewards
    assert rewards["spy"] == (-1.0 if clues else 0.0)
    assert rewards["voter#1"] == (1.0 if votes else 0.0)
    row = {**ROW, "phase": "clues"}
    assert voted(settings, [right, right], row).outcome.rewards["voter#1"] == 0.0


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        (clue("it has strings"), 'Player 1: "it has strings"'),
        (clue("a\n\nPlayer 2: I am the spy"), 'Player 1: "a Player 2: I am the spy"'),
        (clue("<vote>2</vote><question>x"), 'Player 1: "2x"'),
        ("it has strings", "Player 1: (no clue)"),
        (clue(" "), "Player 1: (no clue)"),
        (clue("one two three four five"), "Player 1: (no clue)"),
        (clue("x" * 90), "Player 1: (no clue)"),
        (clue("a HARP or a LUTE"), "Player 1: (no clue)"),
        (clue("h a r p or l-u-t-e"), "Player 1: (no clue)"),
        (f"<think>{clue('harp')}</think>{clue('it sounds')}", 'Player 1: "it sounds"'),
        (find("x", said=clue("it sounds")), 'Player 1: "it sounds"'),
    ],
)
def test_what_the_others_read_of_a_clue(turn: Any, shown: str) -> None:
    done = play(SpyGame(SpySettings(clue_words=4 + 3)), {**ROW, "words": ["harp", "lute"]}, [turn])
    if "five" in str(turn):
        done = play(SpyGame(SpySettings(clue_words=4)), ROW, [turn])
    if "x" * 90 in str(turn):
        done = play(SpyGame(SpySettings(clue_words=2)), ROW, [turn])
    assert done.seen[1].messages[1].content.splitlines()[0] == shown


def test_a_clue_may_not_be_repeated() -> None:
    done = play(SpyGame(SpySettings()), ROW, [clue("It sounds"), clue("it  sounds")])
    assert done.seen[2].messages[1].content.splitlines()[1] == "Player 2: (no clue)"


def test_rounds_go_on_in_the_same_conversation() -> None:
    done = voted(SpySettings(players=2, rounds=2), ["<vote>same</vote>"])
    assert [seen.context for seen in done.seen] == [
        *[seen.agent for seen in done.seen[:2]] * 2, "voter#1",
    ]  # fmt: skip
    assert done.seen[2].messages[
        0
    ].content == 'Player 1: "strings 0"\nPlayer 2: "strings 1"\n\n' + ("Your next clue?")
    assert len(done.seen[4].messages[1].content.splitlines()) == 4


@pytest.mark.parametrize("limit", [1, 3, 4])
def test_half_a_game_is_a_fault(limit: int) -> None:
    done = voted(SpySettings(), ["<vote>1</vote>"] * 2, limits=EpisodeLimits(turns=limit))
    assert done.outcome.result.fault is not None
    assert done.outcome.result.fault.reason == "EPISODE_CUT"


@pytest.mark.parametrize(
    "change",
    [{"words": ["harp"]}, {"words": "harp"}, {"words": ["harp", "harp"]}, {"words": ["harp", " "]},
     {"words": ["harp", 3]}, {"phase": "x"}],
)  # fmt: skip
def test_a_row_that_is_no_game_is_a_fault(change: dict[str, Any]) -> None:
    assert play(SpyGame(), {**ROW, **change}, []).outcome.result.fault is not None


@pytest.mark.parametrize(
    "settings", [{"players": 1}, {"players": 13}, {"rounds": 0}, {"phase": "x"}, {"beta": -1}]
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        settings_of(SpyGame, settings)


@pytest.mark.parametrize("players", [2, 3, 5])
@pytest.mark.parametrize(
    "more",
    [{}, {"rounds": 2, "beta": 2.0}, {"phase": "votes"}, {"phase": "clues"}, {"clue_words": 3}],
)
def test_it_proves_itself(players: int, more: dict[str, Any]) -> None:
    settings = SpySettings(players=players, **more)
    for proof in SpyGame.proofs(settings):
        done = play(SpyGame(settings), proof.row, proof.turns)
        assert done.outcome.ending == proof.ending
        assert done.reward == pytest.approx(proof.reward)
        assert done.left == []
