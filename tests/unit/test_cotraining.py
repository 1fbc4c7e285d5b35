"""Both roles without a model: whose turn it is, where rollouts come from, what is refused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from assay.clients import Fault, Judgement, Result, Span
from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.trainer.engines.types import Request, Response
from assay.trainer.explain.explanation import explain
from assay.trainer.methods.cotraining import display, turns
from assay.trainer.methods.cotraining.measures import RIGHT, WRONG
from assay.trainer.methods.cotraining.protocol import make_prompts
from assay.trainer.methods.cotraining.roles import folder_of, settle, verifier_config
from assay.trainer.methods.cotraining.schedule import Role, Schedule, State
from assay.trainer.methods.cotraining.settings import CotrainingConfig
from assay.trainer.methods.cotraining.sources import Asker, Solutions, Verifications
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.metrics import step_row
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings import config as configs
from rollouts_collecting_support import Serves, stream
from trainer_support import tiny_tokenizer

# Turns.


def loops(schedule: Schedule, stops: dict[Role, int] | None = None) -> list[str]:
    """Two loops in threads, each of as many steps as are scheduled, or fewer; what they did."""
    taking = turns.Alternation(schedule.turns())
    totals: dict[Role, int] = {"generator": schedule.steps, "verifier": schedule.verifier_total}
    done: list[str] = []
    busy = threading.Lock()

    def loop(role: Role) -> None:
        most = min(totals[role], (stops or {}).get(role, totals[role]))
        over = True
        try:
            for _ in range(most):
                taking.take(role)
                assert busy.acquire(blocking=False), "both at once"
                done.append(role[0])
                busy.release()
            over = most < totals[role]
        except turns.OverError:
            done.append(f"{role[0]}!")
        finally:
            taking.leave(role, over=over)

    threads = [threading.Thread(target=loop, args=(role,), daemon=True) for role in totals]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    return done


@pytest.mark.parametrize("schedule", [Schedule(8, 3, 1, 2), Schedule(5, 1, 2, 0)])
def test_loops_go_on_one_at_a_time_in_the_order_of_the_schedule(schedule: Schedule) -> None:
    for _ in range(20):
        assert loops(schedule) == [role[0] for role in schedule.turns()]


def test_a_loop_that_stops_early_ends_the_other() -> None:
    schedule = Schedule(8, 3, 1, 2)
    assert loops(schedule, {"verifier": 3}) == [*"vvgggv", "g!"]
    assert loops(schedule, {"generator": 3}) == [*"vvggg", "v!"]
    assert loops(schedule, {"verifier": 0}) == ["g!"]


# Sources.

CONFIG = CotrainingConfig(
    enabled=True,
    prompt="{question}|{steps}?",
    step_heading="",
    step_separator=";",
    prompts_per_step=3,
    group_size=2,
)


@dataclass
class Says(Serves):
    """A model that says what it is told to of a request, and is asked at once."""

    text: Callable[[Request], str]
    asked: list[Request] = field(default_factory=list)

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        assert requests
        self.asked += requests
        responses = [Response((7, 8), self.text(one), (-0.1, -0.2), False) for one in requests]
        for place in reversed(range(len(requests))):
            on_finished(place, responses[place])
        return responses


FAULT = Fault("WORKER_DIED", "told to", "UNAVAILABLE")


@dataclass
class Round:
    """A judge of solutions: right, wrong or a fault, by what the solution says."""

    texts: list[str] = field(default_factory=list)

    def submit(self, request: Request, response: Response) -> None:
        self.texts.append(response.text)

    def results(self) -> list[Result]:
        return [result_of(text) for text in self.texts]


def result_of(solution: str) -> Result:
    if "fault" in solution:
        return Result("", FAULT)
    right = solution.endswith("right")
    return Result("", Judgement(float(right), "correct" if right else "incorrect"))


def asker(room: int = 0) -> Asker:
    return Asker(make_prompts(CONFIG, tiny_tokenizer()), separator=";", room=room)


class Inner:
    """The generator's source, with the same rollouts at every step."""

    def __init__(self, *solutions: str) -> None:
        draw = stream().draw(4)
        self.rollouts = [
            Rollout(Request(draw, index), Response((5,), text, (-0.1,), False), result_of(text), 9)
            for index, text in enumerate(solutions)
        ]

    def collect(self, policy_step: int, then: Any) -> Collected:
        found = Collected([tuple(self.rollouts)], list(self.rollouts), {"rounds": 1.0})
        then(found)
        return found

    def state_dict(self) -> dict[str, Any]:
        return {"at": 4}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError(state)


FINE = "Step 1: correct\nStep 2: wrong\nThe answer is wrong."


def test_the_verifiers_verdicts_are_spans_of_the_generators_judgements() -> None:
    verifier = Says(lambda request: FINE if request.index else "Hm.")
    source = Solutions(Inner("a;right", "b;wrong", "c;fault"), verifier, asker(), CONFIG)
    collected = source.collect(9)
    unread, read, faulted = collected.judged
    assert collected.groups == [(unread, read, faulted)]
    assert [one.index for one in verifier.asked] == [0, 1], "a solution without truth is not asked"
    assert {one.turn for one in verifier.asked} == {1}
    assert unread.result.judgement == Judgement(1.0, "correct"), "nothing is made up"
    assert read.result.judgement is not None
    assert read.result.judgement.spans == (Span(0, 2, 1.0, "step 1"), Span(2, 7, -1.0, "step 2"))
    assert faulted.result.fault == FAULT
    metrics = collected.metrics
    assert metrics["verifier_accuracy"] == metrics["verifier_steps_read"] == 0.5
    assert metrics["verifier_reach"] == 1
    assert metrics["steps_correct"] == 0.5
    assert metrics["solution_steps"] == 2
    assert source.state_dict() == {"at": 4}


def test_what_does_not_fit_and_what_has_no_truth_is_not_verified() -> None:
    verifier = Says(lambda _request: FINE)
    source = Solutions(Inner("a;right", "b" * 50), verifier, asker(30), CONFIG)
    collected = source.collect(0)
    assert len(verifier.asked) == 1
    assert collected.metrics["verifier_reach"] == 0.5
    nothing = Solutions(Inner("fault"), verifier, asker(), CONFIG).collect(0)
    assert len(verifier.asked) == 1
    assert nothing.judged[0].result.fault == FAULT
    assert "verifier_accuracy" not in nothing.metrics


def verifications(
    solutions: Sequence[str],
    says: Callable[[Request], str],
    *,
    room: int = 0,
    config: CotrainingConfig = CONFIG,
) -> tuple[Verifications, Says, Says]:
    """Solutions by the place of the draw in its step."""
    generator = Says(lambda request: solutions[request.draw.number % len(solutions)])
    verifier = Says(says)
    return (
        Verifications(stream(), generator, Round, verifier, asker=asker(room), config=config),
        generator,
        verifier,
    )


def test_a_verification_is_judged_by_the_truth_of_the_solution() -> None:
    source, generator, verifier = verifications(
        ["a;right", "b;wrong", "c;fault"], lambda request: FINE if request.index else "Hm."
    )
    collected = source.collect(6)
    assert len(collected.judged) == 6
    assert [len(group) for group in collected.groups] == [2, 2, 2]
    assert {one.turn for one in generator.asked} == {2}
    assert {one.turn for one in verifier.asked} == {3}
    rewards = [r.result.judgement and r.result.judgement.reward for r in collected.judged]
    assert rewards == [0.0, 0.8, 0.0, 1.8, None, None]
    verdicts = [r.result.judgement.verdict for r in collected.judged if r.result.judgement]
    assert verdicts == ["unparsed", "incorrect", "unparsed", "correct"]
    assert all(rollout.result.fault == FAULT for rollout in collected.judged[4:])
    assert {rollout.policy_step for rollout in collected.judged} == {6}
    scored = source.scored(collected.groups)
    assert [item.trains for item in scored] == [True] * 4 + [False] * 2
    assert collected.metrics["solutions_correct"] == 0.5
    assert source.classes.weights == {RIGHT: 1, WRONG: 1}


def test_rarer_solutions_weigh_more_and_a_resumed_source_goes_on() -> None:
    source, _, _ = verifications(["right", "right", "x"], lambda _request: FINE)
    collected = source.collect(0)
    weights = [item.weight for item in source.scored(collected.groups)]
    assert weights[0] == weights[2] < 1 < weights[4]
    again, _, _ = verifications(["right", "right", "x"], lambda _request: FINE)
    again.load_state_dict(source.state_dict())
    assert again.collect(1).judged == source.collect(1).judged
    assert again.state_dict() == source.state_dict()


def test_of_more_solutions_than_are_verified_both_classes_and_faults_are_taken() -> None:
    drawn = ["right", "2right", "fault", "4right", "5right", "x", "y" * 50, "8right", "9right"]
    config = replace(CONFIG, draws_per_solution=3)
    source, generator, verifier = verifications(
        drawn, lambda _request: FINE, room=40, config=config
    )
    collected = source.collect(0)
    assert len(generator.asked) == 9
    shown = [group[0].request.draw.problem.question.splitlines()[-1] for group in collected.groups]
    assert shown == ["right", "fault", "x"], "what does not fit is of no class"
    assert len(verifier.asked) == 6
    assert collected.metrics["solutions_correct"] == 0.5
    assert source.classes.weights == {RIGHT: 1, WRONG: 1}
    again, *_ = verifications(drawn, lambda _request: FINE, room=40, config=config)
    again.load_state_dict(source.state_dict())
    assert again.collect(1).judged == source.collect(1).judged


def test_a_solution_that_does_not_fit_is_a_fault_and_a_step_that_fails_changes_nothing() -> None:
    source, _, verifier = verifications(["right", "b" * 50, "x"], lambda _request: FINE, room=40)
    collected = source.collect(0)
    reasons = [r.result.fault and r.result.fault.reason for r in collected.judged]
    assert reasons == [None, None, "CONTEXT_TOO_LONG", "CONTEXT_TOO_LONG", None, None]
    assert all(len(one.draw.prompt_ids) <= 40 for one in verifier.asked)

    def breaks(_request: Request) -> str:
        raise RuntimeError("told to")

    before = source.state_dict()
    verifier.text = breaks
    with pytest.raises(RuntimeError, match="told to"):
        source.collect(1)
    assert source.state_dict() == before


# Prompts.


def test_special_tokens_are_not_read_out_of_what_others_wrote() -> None:
    tokenizer = tiny_tokenizer()
    ask = make_prompts(
        CotrainingConfig(prompt="<end>{question}|{steps}", step_heading=""), tokenizer
    )
    ids = ask("1<end>", ["<pad>2"])
    end, pad = tokenizer.convert_tokens_to_ids(["<end>", "<pad>"])
    assert ids[0] == end, "ours"
    assert ids.count(end) == 1
    assert pad not in ids


def test_a_template_that_hides_the_message_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "none"
    with pytest.raises(ConfigError, match="does not show the user's message"):
        make_prompts(CONFIG, tokenizer)


# Settings.


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["method.cotraining.generator_steps=0"], "method.cotraining.generator_steps"),
        (["method.cotraining.group_size=1"], "method.cotraining.group_size"),
        (["method.cotraining.class_decay=1"], "method.cotraining.class_decay"),
        (["method.cotraining.draws_per_solution=0"], "method.cotraining.draws_per_solution"),
        (["method.cotraining.parsing=loose"], "method.cotraining.parsing"),
        (["method.cotraining.prompt=Check {steps}"], "needs the place {question}, once"),
        (
            ["method.cotraining.warmup_steps=0", "run.steps=3"],
            "leaves the verifier without a step in the run.steps = 3 of the generator",
        ),
        (
            ["method.cotraining.prompts_per_step=1", "optim.mini_batches=2"],
            "samples of the verifier's step",
        ),
        (["model.lora.dropout=0.1", "method.dense.mix=add"], "goes with model.lora.dropout = 0"),
        (["method.truncation.window=8"], "method.truncation"),
        (
            ["method.advantage.difficulty=exp"],
            'goes with method.advantage.difficulty = "none" and a scale that is not "task"',
        ),
        (
            ["method.advantage.scale=task"],
            'goes with method.advantage.difficulty = "none" and a scale that is not "task"',
        ),
        (["method.dense.weight=1.5"], "needs a weight above 0 and of at most 1"),
        (
            ["method.advantage.estimator=gae"],
            "cotrained-verifier (method.cotraining.enabled) needs advantages of a group's rewards",
        ),
        (
            [
                "method.advantage.estimator=gae",
                "method.cotraining.enabled=false",
                "method.dense.decay_to=0",
            ],
            "step-interpolation (method.dense.mix) needs advantages of a group's rewards",
        ),
        (
            [
                "method.advantage.estimator=gae",
                "method.cotraining.enabled=false",
                "method.dense.mix=add",
            ],
            "step-decay (method.dense.decay_to) needs advantages of a group's rewards",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(
    repository: Path, overrides: list[str], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        configs.load(repository / "configs" / "tango.toml", ["data=rows.jsonl", *overrides])
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "override",
    [
        "method.dynamic_sampling.enabled=true",
        "method.shaping.overlong=filter",
        "method.filter.min_group_std=0.05",
        "method.replay.groups=64",
        "method.recomposition.groups=64",
        "method.fire.enabled=true",
        "data.selection.name=mopps",
    ],
)
def test_what_is_about_the_policys_responses_is_not_the_verifiers(
    repository: Path, override: str
) -> None:
    path = repository / "configs" / "tango.toml"
    config = configs.load(path, ["data=rows.jsonl", override])
    assert config.method.cotraining.enabled
    verifier = verifier_config(config).method
    plain = configs.build({}, origin="x").method
    for name in ("dynamic_sampling", "shaping", "filter", "replay", "recomposition", "fire"):
        assert getattr(verifier, name) == getattr(plain, name)


def test_the_verifiers_settings_are_its_own_where_it_has_any(repository: Path) -> None:
    path = repository / "configs" / "tango.toml"
    config = configs.load(
        path, ["data=rows.jsonl", "model=one", "method.cotraining.model=two", "run.steps=7"]
    )
    made = verifier_config(config)
    assert (config.model.name, made.model.name) == ("one", "two")
    assert made.run.steps == 40 + 2
    assert made.method.name == "tango-verifier"
    assert made.method.loss == config.method.loss
    assert not made.method.dense.weight
    assert not made.method.cotraining.enabled
    assert configs.build({}, origin="x").method.cotraining == made.method.cotraining
    lines = [line for section in explain(config).sections for line in section.lines]
    assert "two, by the same algorithm without steps" in lines
    drawn = configs.load(path, ["data=rows.jsonl", "method.cotraining.draws_per_solution=4"])
    said = "of 1,024 solutions drawn, as many right as wrong ones are verified, as far as they go"
    assert said in [line for section in explain(drawn).sections for line in section.lines]
    assert said not in lines
    assert "40 steps of the verifier first, then 3 of the generator to 1 of it, in turns" in lines
    assert any("(1 - alpha) A + alpha A_steps, alpha from 0.1 to 0.001" in line for line in lines)


# Where a run goes on.


def test_checkpoints_that_only_one_role_made_are_taken_away(
    repository: Path, tmp_path: Path
) -> None:
    path = repository / "configs" / "tango.toml"
    config = configs.load(
        path, ["data=rows.jsonl", "method.cotraining.warmup_steps=2", "run.steps=9"]
    )
    folder = RunFolder(tmp_path)

    def made(place: Path, *steps: int) -> None:
        for step in steps:
            (place / checkpoints.name_of(step)).mkdir(parents=True)
            checkpoints.write_manifest(place / checkpoints.name_of(step), step)

    made(folder_of(folder).checkpoints, 1)
    assert settle(config, folder) == State(0, 1)
    made(folder.checkpoints, 2, 4)
    made(folder_of(folder).checkpoints, 2, 4)
    assert settle(config, folder) == State(2, 2), "the fourth step had the verifier's third"
    assert checkpoints.steps(folder.checkpoints) == [2]
    assert checkpoints.steps(folder_of(folder).checkpoints) == [1, 2]


def test_a_line_says_what_its_numbers_are() -> None:
    row = step_row(3, {"verifier_accuracy": 0.5, "verifier_form": 1.0}, Collected([], []), step_s=1)
    assert display.line(row, 9) == (
        "  verifier 3/9: true 50% of right - of wrong - F1 - form 100% solved - weights -/-"
    )
    assert display.line({**row, "fault_ratio": 0.25}, 9).endswith(" fault 25%")
    told = {"verifier_correct_recall": 0.9, "verifier_wrong_recall": None, "verifier_form": 1.0}
    assert display.outcome(told) == (
        "verifier, at its end: 90% of right and - of wrong solutions called so, form 100%"
    )
