"""What appeals tell of a first verifier's errors, and what they cost.

    python -m bench appeal                    both parts
    python -m bench appeal --parts planted    errors planted, 500 runs
    python -m bench appeal --parts real       a strict rule, appealed to `math`, on labelled pairs

**Planted.** 2,000 items, half of them right; the first verifier rejects 30 % of the right ones and
accepts 5 % of the wrong ones; the second is always right. Written down before the first run:

- The bar of the plan: both rates within 2 points after 2,000 items at 6 % more judging. It cannot
  hold. 120 questions tell a share of 0.24 (the errors among the rejected) to 4 points (one standard
  error), and the false negatives with it; to ask about every rejected item costs 62 % here, and at
  least 30 % of the right ones anywhere. `standard_errors` has the arithmetic.
- What should hold: with every rejected item asked about and 5 % of the rest, the false negatives
  are within 2 points in 95 of 100 runs (standard error 0.9 points) and the false positives are not
  (2.8 points); for both, 30 % of the rest are needed (1.0 points).
- The sequence holds both rates at all of 20 looks in at least 95 of 100 runs.

**Real.** 2,655 answers with labels (math_equiv_dev of the shared data). First a rule that compares
the text of the last box with the reference; `math` is the second, on a running server. Bar: the
interval of each rate holds the rate that asking about every item gives; the reward agrees with the
labels more often with the appeal than without. TinyV's 5,000 rows (tinyv_bigmath_5k) are of no use
here: they are problems without responses, all of one kind (the rule says no, the model yes).
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from assay.clients import EmbeddedServices, Item, Judgement, RewardClient
from assay.kit.runs.appeals import AppealTally, ErrorBounds, ErrorRates
from assay.reward_server.domain import Candidate, VerifierItem
from assay.reward_server.profiles.appeals import is_drawn
from bench.math_rows import DATA, read

ITEMS, RIGHT, MISSED, FOOLED, RUNS, LOOKS, WITHIN = 2_000, 0.5, 0.3, 0.05, 500, 20, 0.02
SHARES = (
    ("6 % of all", 0.06, 0.06),
    ("30 % of all", 0.3, 0.3),
    *((f"rejected, {share:.0%} of the rest", 1.0, share) for share in (0.05, 0.1, 0.2, 0.3, 1.0)),
)
RULE = '''
import re

def last_box(response: str, reference: str) -> bool:
    """What stands in the last box is the answer, as text."""
    found = re.findall(r"\\\\boxed\\{([^{}]*)\\}", response)
    return bool(found) and found[-1].strip() == reference
'''
PROFILE = """
[[profile]]
name = "{name}"
description = "The text of the box; {name}."
[[profile.component]]
name = "answer"
verifier = "last-box"
{appeal}
"""
APPEALS = {
    "rule": "",
    "rule-appealed": 'appeal = {{ verifier = "math", on = ["incorrect"], share = {share} }}',
    "rule-all": 'appeal = { verifier = "math", share = 1.0 }',
}


def standard_errors(of_rejected: float, of_accepted: float) -> tuple[float, float]:
    """Of the rates of false positives and negatives: the delta method on two drawn strata."""
    accepted = ITEMS * (RIGHT * (1 - MISSED) + (1 - RIGHT) * FOOLED)
    rejected = ITEMS - accepted
    fooled, missed = ITEMS * (1 - RIGHT) * FOOLED, ITEMS * RIGHT * MISSED
    wrong, right = ITEMS * (1 - RIGHT), ITEMS * RIGHT

    def variance(errors: float, served: float, share: float) -> float:
        asked = share * served
        return errors * (served - errors) * (1 / asked - 1 / served)

    fooled_var = variance(fooled, accepted, of_accepted)
    missed_var = variance(missed, rejected, of_rejected)
    positive = ((wrong - fooled) ** 2 * fooled_var + fooled**2 * missed_var) / wrong**4
    negative = ((right - missed) ** 2 * missed_var + missed**2 * fooled_var) / right**4
    return math.sqrt(positive), math.sqrt(negative)


def planted_run(
    of_rejected: float, of_accepted: float, seed: int
) -> tuple[ErrorRates, list[float], bool]:
    """The rates at the end, those of the items, and whether the intervals ever missed those."""
    dice = random.Random(seed)
    key, tally, missed = dice.randbytes(32), AppealTally(), False
    table = dict.fromkeys([(True, True), (True, False), (False, True), (False, False)], 0)
    truths = [0.0, 0.0]
    for number in range(ITEMS):
        right = dice.random() < RIGHT
        accepted = dice.random() < ((1 - MISSED) if right else FOOLED)
        share = of_accepted if accepted else of_rejected
        item = VerifierItem(Candidate(f"response {number} of run {seed}"))
        asked = share >= 1.0 or is_drawn(key, "answer", item, share)
        table[accepted, right] += 1
        tally.add(
            item.content() or b"",
            accepted=accepted,
            probability=share,
            asked=asked,
            second=right if asked else None,
        )
        if (number + 1) % (ITEMS // LOOKS) == 0:
            rates = tally.rates()
            wrong_ones = table[True, False] + table[False, False]
            right_ones = table[True, True] + table[False, True]
            truths = [table[True, False] / wrong_ones, table[False, True] / right_ones]
            for rate, truth in zip(
                (rates.false_positive, rates.false_negative), truths, strict=True
            ):
                missed = missed or not rate.low <= truth <= rate.high
    return rates, truths, missed


def planted() -> None:
    """Errors planted: how near the estimates are, what they cost, whether the sequence holds."""
    title = f"{ITEMS:,} items, {MISSED:.0%} and {FOOLED:.0%}; {RUNS} runs, seeds 0-{RUNS - 1}"
    print(f"\n## Planted: {title}. Of false positives, false negatives, in points\n")
    heads = ("computed standard error", "found", "within 2, % of runs", "half width", "held, %")
    print(f"| asked about | % more | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|")
    for name, of_rejected, of_accepted in SHARES:
        off: tuple[list[float], list[float]] = ([], [])
        widths: tuple[list[float], list[float]] = ([], [])
        cost, held = 0.0, 0
        for seed in range(RUNS):
            rates, truths, missed = planted_run(of_rejected, of_accepted, seed)
            cost += rates.asked / rates.served / RUNS
            held += not missed
            for place, rate in enumerate((rates.false_positive, rates.false_negative)):
                off[place].append(math.inf if rate.value is None else rate.value - truths[place])
                widths[place].append((rate.high - rate.low) / 2)
        cells = (
            [100 * one for one in standard_errors(of_rejected, of_accepted)],
            [100 * math.sqrt(statistics.fmean(x * x for x in one)) for one in off],
            [100 * statistics.fmean(abs(x) <= WITHIN for x in one) for one in off],
            [100 * statistics.fmean(one) for one in widths],
            [100 * held / RUNS],
        )
        told = " | ".join(", ".join(f"{one:.1f}" for one in cell) for cell in cells)
        print(f"| {name} | {100 * cost:.0f} | {told} |", flush=True)


def real(share: float = 0.05) -> None:
    """A strict rule of boxes, appealed to `math`, on labelled pairs."""
    rows = read("math_equiv_dev.jsonl.gz", DATA)
    pairs = [(str(row["response"]), str(row["gold"]), bool(row["label"])) for row in rows]
    with tempfile.TemporaryDirectory(prefix="assay-appeal-") as name:
        folder = Path(name)
        (folder / "key").write_text("the key of python -m bench appeal")
        profiles = [
            PROFILE.format(name=one, appeal=rule.format(share=share) if "share}" in rule else rule)
            for one, rule in APPEALS.items()
        ]
        (folder / "profiles.toml").write_text("\n".join(profiles))
        flags: tuple[str, ...] = (
            "--profiles",
            str(folder / "profiles.toml"),
            "--cache-entries",
            "0",
        )
        flags += ("--appeal-key-file", str(folder / "key"))
        (folder / "rule.py").write_text(RULE)
        flags += ("--verifier", f"last-box={folder / 'rule.py'}:last_box")
        with (
            EmbeddedServices(arguments={"reward": flags}) as services,
            RewardClient(services.addresses["reward"]) as client,
        ):
            found = {one: _scored(client, one, pairs) for one in APPEALS}
    print(f"\n## Real: {len(pairs):,} labelled pairs; the last box as text, then `math`\n")
    print("| profile | judged | asked about | agrees with the labels | ms an item |")
    print("|---|---|---|---|---|")
    for one, (judged, seconds) in found.items():
        kept = {n: said for n, said in enumerate(judged) if said is not None}
        agree = statistics.fmean((said.reward >= 0.5) == pairs[n][2] for n, said in kept.items())
        asked = sum(said.appeal is not None for said in kept.values())
        share_asked, spent_ms = asked / len(kept), 1e3 * seconds / len(pairs)
        print(
            f"| {one} | {len(kept)} | {asked} ({share_asked:.0%}) | {agree:.2%} | {spent_ms:.2f} |"
        )
    rates = _tallied(pairs, found["rule-appealed"][0], share).rates()
    whole = _tallied(pairs, found["rule-all"][0], 1.0, called=False).rates()
    for kind in ("false_positive", "false_negative"):
        estimate: ErrorBounds = getattr(rates, kind)
        truth: ErrorBounds = getattr(whole, kind)
        print(f"{kind}: {_shown(estimate)} from appeals, {_shown(truth)} where all are asked about")
    print(f"{rates.asked} of {rates.served} different items asked about")


def _scored(
    client: RewardClient, profile: str, pairs: Sequence[tuple[str, str, bool]]
) -> tuple[list[Judgement | None], float]:
    items = [Item(response, gold, verifier=profile) for response, gold, _ in pairs]
    client.score(items[:64])
    began_s = time.perf_counter()
    results = client.score(items)
    return [result.judgement for result in results], time.perf_counter() - began_s


def _tallied(
    pairs: Sequence[tuple[str, str, bool]],
    judged: Sequence[Judgement | None],
    share: float,
    *,
    called: bool = True,
) -> AppealTally:
    """As the server counts: by what its results say, and the verdict where nobody was asked."""
    tally = AppealTally()
    for (response, gold, _), said in zip(pairs, judged, strict=True):
        if said is None:
            continue
        appeal = said.appeal
        accepted = (appeal.first.reward if appeal else said.reward) >= 0.5
        second = None if appeal is None or appeal.second is None else appeal.second.reward >= 0.5
        item = VerifierItem(Candidate(response), references=(gold,))
        tally.add(
            item.content() or b"",
            accepted=accepted,
            probability=1.0 if called and not accepted else share,
            asked=appeal is not None,
            second=second,
        )
    return tally


def _shown(rate: ErrorBounds) -> str:
    value = "?" if rate.value is None else f"{100 * rate.value:.1f} %"
    return f"{value} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


PARTS = {"planted": planted, "real": real}


def run(arguments: Sequence[str] = ()) -> None:
    """Prints the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench appeal")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    for part in parser.parse_args(arguments).parts:
        PARTS[part]()
