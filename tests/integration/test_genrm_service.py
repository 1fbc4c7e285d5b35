"""The whole service over the real wire, with models of two layers: contract, limits, faults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.genrm_service import SKY, Stubs, item, pair, running, stubs
from tests.genrm_support import make_model
from tests.metrics_support import conserved, scrape, total

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.genrm.domain import ChatMessage
from assay.genrm.engines.prompts import PromptEncoder
from assay.genrm.judges.readings import readings
from assay.genrm.templates import load_templates
from assay.kit.errors import reason_of, status_sent

pytestmark = pytest.mark.timeout(300)  # the server's start is the first test's

TIMEOUT_S = 60.0
TEMPLATE = """
name = "colour"
version = 3
kind = "pointwise"
description = "Does the response name a colour?"
prefill = "Verdict:"
user = '''
{question}

{response}

Does the response name a colour? Reply with yes or no.
'''
[[verdicts]]
text = " yes"
value = 1.0
[[verdicts]]
text = " no"
value = 0.0
"""
LONG = "The sky is blue because of the air. " * 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge, a reward model and a step model, and the file that names them."""
    folder = tmp_path_factory.mktemp("models")
    text = 'default = "judge"\n'
    for name, kind in (("judge", "causal"), ("reward", "scalar"), ("steps", "step")):
        make_model(folder / name, kind)  # type: ignore[arg-type]
        text += f'[model.{name}]\npath = "./{name}"\n'
    (folder / "models.toml").write_text(text, encoding="utf-8")
    (folder / "templates").mkdir()
    (folder / "templates" / "colour.toml").write_text(TEMPLATE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Stubs]:
    """One server with all three."""
    flags = ("--models", folder / "models.toml", "--templates", folder / "templates")
    with running(*flags, "--metrics-port", "0") as (address, process), stubs(address) as made:
        assert process.stdout is not None
        made.metrics = process.stdout.readline().split()[-1]
        yield made


def judge(service: Stubs, *items: judge_pb2.JudgeItem, **settings: Any) -> Any:
    request = judge_pb2.JudgeResponsesRequest(
        items=items, settings=judge_pb2.JudgeSettings(**settings)
    )
    return service.judge.JudgeResponses(request, timeout=TIMEOUT_S)


def reasons(response: Any) -> list[str]:
    """For each result its fault's reason, or what it is."""
    found = []
    for result in response.results:
        kind = result.WhichOneof("outcome")
        found.append(reason_of(result.fault) if kind == "fault" else kind)
    return found


def refusal(call: Any, request: Message, timeout_s: float | None = TIMEOUT_S) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=timeout_s)
    status = status_sent(caught.value)
    return reason_of(status) if status else caught.value.code().name  # type: ignore[attr-defined]


def test_health_says_serving_for_both_services(service: Stubs) -> None:
    stub = health_pb2_grpc.HealthStub(service.channel)
    for name in (
        "",
        "assay.api.judge.v1.JudgeService",
        "assay.api.process.v1.ProcessRewardService",
    ):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_what_is_served(service: Stubs) -> None:
    listed = service.judge.ListJudgeModels(judge_pb2.ListJudgeModelsRequest(), timeout=5)
    assert [(model.name, model.is_default) for model in listed.models] == [
        ("judge", True),
        ("reward", False),
    ]
    assert [list(model.scoring_modes) for model in listed.models] == [
        [
            judge_pb2.SCORING_MODE_TOKEN_PROBABILITY,
            judge_pb2.SCORING_MODE_VOTES,
            judge_pb2.SCORING_MODE_CONSENSUS,
        ],
        [judge_pb2.SCORING_MODE_SCALAR_HEAD],
    ]
    assert all(model.revision and model.context_tokens == 4096 for model in listed.models)
    names = [template.name for template in listed.templates]
    assert names == sorted(names)
    assert "preference@1" in names
    assert listed.limits.max_items == 1024
    process = service.process.ListProcessModels(process_pb2.ListProcessModelsRequest(), timeout=5)
    assert [(model.name, model.generative) for model in process.models] == [
        ("judge", True),
        ("steps", False),
    ]


def test_responses_are_judged_in_order_and_say_by_whom(service: Stubs) -> None:
    items = [
        item("gold", "Blue.", ground_truth="blue"),
        item("anchor", "Blue.", anchor_response="Red."),
        item("rubric", "Blue.", rubric="Names a colour."),
        item("alone", "Blue."),
    ]
    response = judge(service, *items)
    assert [result.id for result in response.results] == [each.id for each in items]
    assert reasons(response) == ["judgement"] * 4
    for result in response.results:
        judgement = result.judgement
        assert 0 <= judgement.score <= 1
        assert not judgement.HasField("standard_error")
        assert judgement.judge.model == "judge"
        assert "@" in judgement.judge.template
        assert judgement.usage.prompt_tokens >= judgement.usage.cached_prompt_tokens
        assert judgement.usage.prompt_tokens > 0
        assert judgement.usage.completion_tokens == 0
        assert result.timings.execution.ToTimedelta().total_seconds() > 0


def test_a_score_is_what_a_direct_forward_pass_says(service: Stubs, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    question = (ChatMessage("user", SKY[0].content),)
    slots = {"question": question, "response": "Blue.", "ground_truth": "blue", "rubric": None}
    read_as = readings(load_templates().get("correctness", "pointwise", ""), 5, slots)
    encoder = PromptEncoder(AutoTokenizer.from_pretrained(folder / "judge"))
    model = AutoModelForCausalLM.from_pretrained(folder / "judge").eval()
    expected = []
    for template in read_as:
        ids = list(encoder.encode(template.render(**slots)))
        logprobs = []
        for option in encoder.encode_options(template.options):
            with torch.no_grad():
                logits = model(torch.tensor([[*ids, *option]])).logits[0]
            rows = logits[len(ids) - 1 : -1].log_softmax(-1)
            logprobs.append(sum(float(rows[k, token]) for k, token in enumerate(option)))
        weights = torch.tensor(logprobs, dtype=torch.float64).softmax(0)
        expected.append(float(weights @ torch.tensor(template.values, dtype=torch.float64)))
    asked = item("a", "Blue.", ground_truth="blue")
    found = judge(service, asked, template="correctness", seed=5).results[0].judgement
    assert found.score == pytest.approx(sum(expected) / 2, abs=1e-5)
    assert found.letter_gap == pytest.approx(abs(expected[0] - expected[1]), abs=1e-5)


def test_equal_calls_give_equal_judgements_whatever_stands_beside(service: Stubs) -> None:
    beside = [item(f"{i}", "Red. " * i) for i in range(1, 9)]
    alone = judge(service, item("a", "Blue."), seed=5)
    among = judge(service, *beside, item("a", "Blue."), seed=5)
    assert among.results[-1].judgement.score == pytest.approx(
        alone.results[0].judgement.score, abs=1e-5
    )


def test_letters_without_a_seed_are_new_for_each_call(service: Stubs) -> None:
    found = [judge(service, item("a", "Blue.")).results[0].judgement for _ in range(6)]
    assert len({judgement.score for judgement in found}) > 1
    assert all(judgement.HasField("letter_gap") for judgement in found)


def test_a_bound_on_letters_is_a_fault_of_its_own(service: Stubs) -> None:
    asked = item("a", "Blue.")
    gap = judge(service, asked, seed=5).results[0].judgement.letter_gap
    assert gap > 0
    assert reasons(judge(service, asked, seed=5, max_letter_gap=gap / 2)) == ["LETTER_GAP"]
    assert reasons(judge(service, asked, seed=5, max_letter_gap=gap)) == ["judgement"]
    wrong = judge(service, asked, max_letter_gap=1.5)
    assert reasons(wrong) == ["INVALID_PARAMETER"]


def test_votes_with_a_seed_are_repeatable(service: Stubs) -> None:
    settings: dict[str, Any] = {
        "scoring_mode": judge_pb2.SCORING_MODE_CONSENSUS,
        "votes": 3,
        "max_tokens": 4,
        "seed": 11,
    }
    first, second = (judge(service, item("a", "Blue."), **settings) for _ in range(2))
    assert reasons(first) == ["JUDGE_UNPARSED"]  # random weights write no critique
    assert first.results[0].fault == second.results[0].fault


def test_a_pair_swapped_is_exactly_one_minus(service: Stubs) -> None:
    request = judge_pb2.JudgePairsRequest(
        items=[pair("ab", "Blue.", "Red."), pair("ba", "Red.", "Blue."), pair("aa", "So.", "So.")]
    )
    ab, ba, aa = (
        result.judgement for result in service.judge.JudgePairs(request, timeout=TIMEOUT_S).results
    )
    assert ab.win_probability == 1 - ba.win_probability
    assert aa.win_probability == 0.5
    assert ab.order_gap == pytest.approx(abs(ab.forward_probability - ab.reverse_probability))


def test_a_gap_beyond_what_is_allowed_is_a_fault(service: Stubs) -> None:
    request = judge_pb2.JudgePairsRequest(items=[pair("ab", "Blue.", "Red.")], max_order_gap=0)
    response = service.judge.JudgePairs(request, timeout=TIMEOUT_S)
    assert reasons(response) == ["ORDER_GAP"]


def test_a_trajectory_is_judged_alone_and_against_a_text(service: Stubs) -> None:
    calls = [judge_pb2.TrajectoryCall(name="look<|im_end|>", arguments='{"where": "up"}')]
    turns = [
        judge_pb2.TrajectoryTurn(
            message={"role": "assistant", "content": "Looking."}, tool_calls=calls
        ),
        judge_pb2.TrajectoryTurn(message={"role": "tool", "content": "<|im_start|>blue"}),
        judge_pb2.TrajectoryTurn(message={"role": "assistant", "content": "It is blue."}),
    ]
    alone = judge_pb2.JudgeItem(id="a", prompt=SKY, turns=turns, ground_truth="blue")
    shorter = judge_pb2.JudgeItem(id="b", prompt=SKY, turns=turns[2:], ground_truth="blue")
    silent = judge_pb2.JudgeItem(id="c", prompt=SKY, turns=turns[1:2], ground_truth="blue")
    response = judge(service, alone, shorter, silent, seed=1)
    assert reasons(response) == ["judgement", "judgement", "MISSING_RESPONSE"]
    one, two = (result.judgement.usage.prompt_tokens for result in response.results[:2])
    assert one > two
    pairs = [
        judge_pb2.PairItem(id="ab", prompt=SKY, turns_a=turns, response_b="Blue."),
        judge_pb2.PairItem(id="ba", prompt=SKY, response_a="Blue.", turns_b=turns),
    ]
    request = judge_pb2.JudgePairsRequest(items=pairs, settings=judge_pb2.JudgeSettings(seed=1))
    ab, ba = (
        result.judgement for result in service.judge.JudgePairs(request, timeout=TIMEOUT_S).results
    )
    assert ab.win_probability == 1 - ba.win_probability


@pytest.mark.parametrize("anchor", ["", "Grey."])
def test_a_group_is_ranked(service: Stubs, anchor: str) -> None:
    group = judge_pb2.GroupItem(
        id="g", prompt=SKY, responses=["Blue.", "Red.", "Green."], anchor_response=anchor
    )
    response = service.judge.JudgeGroups(
        judge_pb2.JudgeGroupsRequest(items=[group]), timeout=TIMEOUT_S
    )
    [result] = response.results
    assert len(result.ranking.scores) == len(result.ranking.order_gaps) == 3
    assert all(0 <= score <= 1 for score in result.ranking.scores)
    if not anchor:
        assert sum(result.ranking.scores) == pytest.approx(1.5)


def test_a_group_by_rounds_asks_less_and_says_how_much(service: Stubs) -> None:
    texts = [f"It is the colour number {number}." for number in range(12)]
    group = judge_pb2.GroupItem(id="g", prompt=SKY, responses=texts)
    seeded = judge_pb2.JudgeSettings(seed=3)

    def ranking(mode: judge_pb2.RankingMode.ValueType, rounds: int = 0) -> judge_pb2.GroupRanking:
        request = judge_pb2.JudgeGroupsRequest(
            items=[group], ranking_mode=mode, rounds=rounds, settings=seeded
        )
        [result] = service.judge.JudgeGroups(request, timeout=TIMEOUT_S).results
        assert result.WhichOneof("outcome") == "ranking", result
        return result.ranking

    whole = ranking(judge_pb2.RANKING_MODE_ROUND_ROBIN)
    some = ranking(judge_pb2.RANKING_MODE_SWISS, 3)
    assert (whole.comparisons, some.comparisons, some.comparisons_lost) == (66, 18, 0)
    assert sum(some.scores) == pytest.approx(6.0)
    again = ranking(judge_pb2.RANKING_MODE_SWISS, 3)
    assert list(some.scores) == pytest.approx(list(again.scores), abs=1e-5)
    enough = ranking(judge_pb2.RANKING_MODE_SWISS, 12)
    assert list(enough.scores) == pytest.approx(list(whole.scores), abs=1e-5)
    assert enough.comparisons == 66


@pytest.mark.parametrize(
    ("mode", "rounds", "says"),
    [
        (judge_pb2.RANKING_MODE_UNSPECIFIED, 3, "leave them out"),
        (judge_pb2.RANKING_MODE_SWISS, 1, "joins nobody"),
        (judge_pb2.RANKING_MODE_SWISS, -1, "from 0 to 256"),
    ],
)
def test_rounds_that_mean_nothing(
    service: Stubs, mode: judge_pb2.RankingMode.ValueType, rounds: int, says: str
) -> None:
    group = judge_pb2.GroupItem(id="g", prompt=SKY, responses=["Blue.", "Red."])
    request = judge_pb2.JudgeGroupsRequest(items=[group], ranking_mode=mode, rounds=rounds)
    response = service.judge.JudgeGroups(request, timeout=TIMEOUT_S)
    assert reasons(response) == ["INVALID_PARAMETER"]
    assert says in response.results[0].fault.message


@pytest.mark.slow
def test_the_operators_templates_are_served_besides_ours(service: Stubs) -> None:
    listed = service.judge.ListJudgeModels(judge_pb2.ListJudgeModelsRequest(), timeout=5)
    assert "colour@3" in [template.name for template in listed.templates]
    response = judge(service, item("a", "Blue."), template="colour")
    assert response.results[0].judgement.judge.template == "colour@3"


def test_a_reward_model_gives_its_logit(service: Stubs) -> None:
    response = judge(service, item("a", "Blue."), model="reward")
    assert math.isfinite(response.results[0].judgement.score)
    assert not response.results[0].judgement.judge.template


def test_steps_cover_the_response(service: Stubs) -> None:
    text = "First, look up.\n\nThen name it.\n\nIt is blue.\n"
    request = process_pb2.ScoreStepsRequest(
        items=[process_pb2.StepItem(id="a", prompt=SKY, response=text)],
        settings=process_pb2.StepSettings(aggregation=process_pb2.STEP_AGGREGATION_MIN),
    )
    [result] = service.process.ScoreSteps(request, timeout=TIMEOUT_S).results
    scores = result.scores
    ranges = [(step.range.start, step.range.end) for step in scores.steps]
    assert "".join(text[start:end] for start, end in ranges) == text
    assert len(ranges) == 3
    assert scores.aggregate == min(step.score for step in scores.steps)
    assert scores.passed == (scores.aggregate >= scores.error_threshold)
    assert scores.model == "steps"


def test_a_dialogue_of_self_verification(service: Stubs) -> None:
    request = process_pb2.ScoreSelfVerificationRequest(
        items=[
            process_pb2.SelfVerificationItem(
                id="revised",
                prompt=SKY,
                policy_turns=["Red.", "No. The answer is wrong.", "Blue."],
                attempts_correct=[False, True],
                group_id="sky",
            ),
            process_pb2.SelfVerificationItem(id="unknown", prompt=SKY, policy_turns=["Red."]),
        ],
        settings=process_pb2.SelfVerificationSettings(model="judge", shaping_weight=1.0),
    )
    response = service.process.ScoreSelfVerification(request, timeout=TIMEOUT_S)
    assert reasons(response) == ["scores", "INVALID_PARAMETER"]
    turns = response.results[0].scores.turns
    assert [turn.reward for turn in turns] == [0.0, 1.0, 2.0]
    assert 0 < turns[1].correct_probability < 1
    assert response.metrics.final_accuracy == 1
    assert not response.metrics.HasField("correct_recall")


def test_faults_are_of_their_own_item_and_name_the_remedy(service: Stubs) -> None:
    bad_role = judge_pb2.JudgeItem(id="role", prompt=[{"role": "boss"}], response="x")  # type: ignore[list-item]
    response = judge(
        service,
        item("fine", "Blue."),
        item("empty", " \n"),
        item("long", LONG),
        item("huge", "x" * (4 * 2**20)),
        bad_role,
    )
    assert reasons(response) == [
        "judgement",
        "MISSING_RESPONSE",
        "CONTEXT_TOO_LONG",
        "ITEM_TOO_LARGE",
        "INVALID_PARAMETER",
    ]


@pytest.mark.parametrize(
    ("settings", "reason", "hint"),
    [
        ({"model": "nobody"}, "UNKNOWN_MODEL", "known: judge, reward"),
        ({"model": "steps"}, "UNKNOWN_MODEL", "known: judge, reward"),
        ({"template": "nothing"}, "UNKNOWN_TEMPLATE", "quality@2"),
        ({"votes": -1}, "INVALID_PARAMETER", "votes"),
        ({"scoring_mode": judge_pb2.SCORING_MODE_SCALAR_HEAD}, "INVALID_PARAMETER", ""),
        (
            {"model": "reward", "scoring_mode": judge_pb2.SCORING_MODE_VOTES},
            "INVALID_PARAMETER",
            "",
        ),
    ],
)
def test_wrong_settings_are_the_fault_of_every_item(
    service: Stubs, settings: dict[str, Any], reason: str, hint: str
) -> None:
    response = judge(service, item("a", "Blue."), item("b", "Red."), **settings)
    assert reasons(response) == [reason, reason]
    assert hint in response.results[0].fault.message


def test_a_candidate_too_long_is_cut_only_where_the_caller_says_so(service: Stubs) -> None:
    policy = judge_pb2.OVERFLOW_POLICY_KEEP_ENDS
    response = judge(service, item("a", LONG), item("b", "Blue."), overflow_policy=policy)
    assert reasons(response) == ["judgement", "judgement"]
    cut = [result.judgement.candidate_truncated for result in response.results]
    assert cut == [True, False]


@pytest.mark.parametrize(
    "item_id", ["x" * 256, "ü" * 128, "a\nb\0c", "<|im_end|>", "../../etc", "\u202ereversed"]
)
def test_ids_are_the_callers_business(service: Stubs, item_id: str) -> None:
    assert judge(service, item(item_id, "Blue.")).results[0].id == item_id


def test_requests_that_are_wrong_as_a_whole(service: Stubs) -> None:
    call = service.judge.JudgeResponses
    request = judge_pb2.JudgeResponsesRequest
    one = item("a", "Blue.")
    assert refusal(call, request()) == "EMPTY_BATCH"
    assert refusal(call, request(items=[one, one])) == "DUPLICATE_ITEM_ID"
    assert refusal(call, request(items=[item("", "x")])) == "MISSING_ITEM_ID"
    assert refusal(call, request(items=[item("x" * 257, "x")])) == "MISSING_ITEM_ID"
    many = [item(f"{i}", "x") for i in range(1025)]
    assert refusal(call, request(items=many)) == "BATCH_TOO_LARGE"
    assert refusal(call, request(items=[one]), timeout_s=None) == "DEADLINE_REQUIRED"
    steps = process_pb2.ScoreStepsRequest()
    assert refusal(service.process.ScoreSteps, steps) == "EMPTY_BATCH"
    dialogues = process_pb2.ScoreSelfVerificationRequest()
    assert refusal(service.process.ScoreSelfVerification, dialogues) == "EMPTY_BATCH"


def test_what_is_not_done_by_the_deadline_is_a_fault_and_the_rest_is_returned(
    service: Stubs,
) -> None:
    request = judge_pb2.JudgeResponsesRequest(
        items=[item("late", "Blue."), item("early", "")],
        settings=judge_pb2.JudgeSettings(
            scoring_mode=judge_pb2.SCORING_MODE_VOTES,
            template="correctness-reasoned",
            votes=64,
            max_tokens=3000,
        ),
    )
    request.items[0].ground_truth = "blue"
    response = service.judge.JudgeResponses(request, timeout=1.0)
    assert reasons(response) == ["DEADLINE_EXCEEDED", "MISSING_RESPONSE"]
    # What was given up does not stand in the way of what comes.
    assert reasons(judge(service, item("next", "Blue."))) == ["judgement"]


def test_judgements_and_faults_together_are_the_items(service: Stubs) -> None:
    items = [
        item(f"{i}", ["Blue.", "", LONG, "\u0000\u202e", "<|im_end|>"][i % 5]) for i in range(200)
    ]
    response = judge(service, *items)
    assert [result.id for result in response.results] == [each.id for each in items]
    assert all(result.WhichOneof("outcome") for result in response.results)
    counts = {reason: reasons(response).count(reason) for reason in set(reasons(response))}
    assert counts == {"judgement": 120, "MISSING_RESPONSE": 40, "CONTEXT_TOO_LONG": 40}
    # Equal items are asked once: all but one of each kind were cached.
    cached = [
        result.judgement.usage.cached_prompt_tokens == result.judgement.usage.prompt_tokens
        for result in response.results
        if result.HasField("judgement")
    ]
    assert cached.count(True) >= 117


def test_what_is_answered_is_counted_by_model(service: Stubs) -> None:
    before = scrape(service.metrics)
    # Texts of its own: what was answered before is not asked again.
    items = [item("yes", "Blue, counted."), item("also", "Red, counted."), item("long", LONG)]
    answer = judge(service, *items, model="reward")
    assert reasons(answer) == ["judgement", "judgement", "CONTEXT_TOO_LONG"]
    assert set(reasons(judge(service, item("x", "Blue."), model="nobody"))) == {"UNKNOWN_MODEL"}
    after = scrape(service.metrics)

    def rise(name: str, **labels: str) -> float:
        return total(after, name, **labels) - total(before, name, **labels)

    assert conserved(after, "genrm", "judgements")
    assert rise("assay_genrm_items_total") == 4
    assert rise("assay_genrm_judgements_total", model="reward", kind="response") == 2
    assert rise("assay_genrm_faults_total", model="reward", reason="CONTEXT_TOO_LONG") == 1
    assert rise("assay_genrm_faults_total", model="unknown", reason="UNKNOWN_MODEL") == 1
    assert rise("assay_genrm_engine_answers_total", model="reward") == 2
    used = sum(result.judgement.usage.prompt_tokens for result in answer.results)
    assert rise("assay_genrm_tokens_total", model="reward", kind="prompt") == used > 0
    assert rise("assay_genrm_batch_rows_total", model="reward") == 2
    assert 1 <= rise("assay_genrm_batches_total", model="reward") <= 2
    assert total(after, "assay_genrm_queue_items") == 0
    assert not [s for family in after for s in family.samples if "nobody" in s.labels.values()]


@pytest.mark.slow
def test_a_model_that_judges_nothing_gives_no_number(folder: Path) -> None:
    """Random weights, as the service starts by itself: faults that say why, in the listing too."""
    flags = ("--model", f"judge={folder / 'judge'}", "--self-test", "--least-mass", "0.5")
    with running(*flags) as (address, _), stubs(address) as service:
        found = judge(service, item("a", "Blue."), item("b", "Green.", ground_truth="Blue."))
        pairs = service.judge.JudgePairs(
            judge_pb2.JudgePairsRequest(items=[pair("c", "Blue.", "Green.")]), timeout=TIMEOUT_S
        )
        for result in (*found.results, *pairs.results):
            assert reason_of(result.fault) == "JUDGE_UNFIT"
            assert "known answers (LOW_VERDICT_MASS" in result.fault.message
        listed = service.judge.ListJudgeModels(
            judge_pb2.ListJudgeModelsRequest(), timeout=TIMEOUT_S
        )
        (model,) = listed.models
        fitness = {one.template.partition("@")[0]: one for one in model.fitness}
        for name in ("quality", "correctness", "preference"):
            assert not fitness[name].fit
            assert not fitness[name].HasField("auc")
            assert 0.0 <= fitness[name].verdict_mass < 0.5
            assert name in fitness[name].problem


@pytest.mark.slow
def test_the_floor_alone_withholds_a_score_and_votes_are_another_way(folder: Path) -> None:
    flags = ("--model", f"judge={folder / 'judge'}", "--least-mass", "0.5")
    with running(*flags) as (address, _), stubs(address) as service:
        (result,) = judge(service, item("a", "Blue.")).results
        assert reason_of(result.fault) == "LOW_VERDICT_MASS"
        votes = {"low_mass": judge_pb2.LOW_MASS_POLICY_VOTES, "votes": 2, "max_tokens": 4}
        (result,) = judge(service, item("a", "Blue."), **votes).results
        assert reason_of(result.fault) == "JUDGE_UNPARSED", "random words are no vote either"


def test_the_share_comes_with_every_judgement(service: Stubs) -> None:
    (result,) = judge(service, item("a", "Blue.")).results
    assert 0.0 < result.judgement.verdict_mass < 1.0
    pairs = service.judge.JudgePairs(
        judge_pb2.JudgePairsRequest(items=[pair("c", "Blue.", "Green.")]), timeout=TIMEOUT_S
    )
    assert 0.0 < pairs.results[0].judgement.verdict_mass < 1.0
    (rated,) = judge(service, item("a", "Blue."), model="reward").results
    assert not rated.judgement.HasField("verdict_mass")
