"""Every number that a step may have: its name, unit, meaning and source. The one place.

metrics.jsonl has a column for each; docs/metrics.md is written from here by scripts/metrics_doc.py;
TensorBoard, Weights & Biases and trackio show them under `group/shown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal[
    "reward",
    "faults",
    "response",
    "sampling",
    "turns",
    "verifier",
    "policy",
    "drift",
    "critic",
    "time",
]
GROUPS: dict[Group, str] = {
    "reward": "Rewards and verdicts, over the judged rollouts of the step",
    "faults": "Rollouts without a judgement",
    "response": "Responses, over all rollouts of the step",
    "sampling": "How the step's groups came together",
    "turns": "Dialogues without a fault (`method.turns`); null for single responses",
    "verifier": "A verifier that learns beside the policy (`cotraining`): of verifications for the "
    "generator's steps; of those of its own steps, in verifier/metrics.jsonl",
    "policy": "The update",
    "drift": "Sampler against trainer",
    "critic": "The value function (estimator `gae`)",
    "time": "Time",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a step.

    Attributes:
        key: its column in metrics.jsonl.
        group: what it is about.
        shown: its name within the group where it is reported; counts are a group of their own.
        unit: of the number; "share" is a ratio from 0 to 1.
        meaning: in one sentence; formulas as text.
    """

    key: str
    group: Group
    shown: str
    unit: str
    meaning: str


def _m(key: str, group: Group, unit: str, meaning: str, *, shown: str = "") -> Metric:
    return Metric(key, group, shown or key, unit, meaning)


_TABLE = (
    _m(
        "reward", "reward", "reward",
        "Mean reward of the judgements, before any shaping.",
        shown="mean",
    ),
    _m(
        "reward_std", "reward", "reward",
        "Sample deviation (n - 1) of those rewards.",
        shown="std",
    ),
    _m(
        "shaped_reward", "reward", "reward",
        "Mean of what trains: the reward with penalties for length and repetition. Null "
        "without shaping.",
        shown="shaped",
    ),
    _m(
        "correct", "reward", "share",
        "Judged rollouts with the verdict `correct`. Dropped groups count, so that this is "
        "the policy's accuracy, not that of the batch.",
    ),
    _m(
        "verdicts", "reward", "counts",
        "Judged rollouts by verdict.",
    ),
    _m(
        "order_gap", "reward", "probability",
        "Mean difference between the two orders in which a judge of pairs was shown a response and "
        "what it is held against (arXiv 2504.04950). Null with other judges.",
    ),
    _m(
        "signal_ratio", "reward", "share",
        "Groups of the batch with an advantage other than 0: the others teach nothing. Of "
        "responses, with truncation.",
    ),
    _m(
        "left_out_ratio", "reward", "share",
        "Judged responses of the batch none of whose tokens are in the loss: cut ones with "
        "`overlong = \"filter\"`, void ones, what recomposition leaves to another step, responses "
        "without an unsure token with segments. Those that PROF or the spread of rewards drop are "
        "not counted as judged.",
    ),
    _m(
        "step_weight", "reward", "weight",
        "Of the advantages of steps beside that of the outcome (`method.dense`).",
    ),
    _m(
        "advantage_std", "reward", "advantage",
        "Deviation of the advantages over the tokens in the loss.",
    ),
    _m(
        "fault_ratio", "faults", "share",
        "Rollouts without a judgement, dialogues with an attempt without one included. They are in "
        "no mean of rewards and in no loss, but for turns that earn nothing from what is missing.",
        shown="ratio",
    ),
    _m(
        "faults", "faults", "counts",
        "Rollouts without a judgement by reason; see errors.md.",
    ),
    _m(
        "responses", "response", "responses",
        "Rollouts that were asked for and came back, judged or not, over all processes, "
        "those of dropped groups included.",
        shown="count",
    ),
    _m(
        "generated_tokens", "response", "tokens",
        "Their tokens, end-of-sequence included. With truncation: those that this step drew; the "
        "other lines here are about the responses that ended in it.",
    ),
    _m(
        "response_length", "response", "tokens",
        "Their mean length.",
        shown="length_mean",
    ),
    _m(
        "response_length_p95", "response", "tokens",
        "The length that 95 % of them do not exceed.",
        shown="length_p95",
    ),
    _m(
        "truncated", "response", "share",
        "Cut at rollout.max_new_tokens.",
    ),
    _m(
        "keep_rate", "sampling", "share",
        "Groups with both correct and other responses, among those drawn in this step that have "
        "two judgements or more. Without dynamic sampling nothing is dropped, and this says what "
        "would be. Null where groups have one response.",
    ),
    _m(
        "keep_rate_ema", "sampling", "share",
        "What the next step expects of it, which sets how much it draws. Null without dynamic "
        "sampling.",
    ),
    _m(
        "draws", "sampling", "groups",
        "Prompts answered in this step: drawn, and as often again as they were hinted at.",
    ),
    _m(
        "rounds", "sampling", "rounds",
        "Times that the policy was asked.",
    ),
    _m(
        "generated_per_used", "sampling", "ratio",
        "draws / rollout.prompts_per_step; with dynamic sampling near 1 / P(keep) [derivation].",
    ),
    _m(
        "groups_all_correct", "sampling", "groups",
        "Drawn groups whose judged responses are all correct.",
    ),
    _m(
        "groups_all_wrong", "sampling", "groups",
        "Drawn groups of which none is correct.",
    ),
    _m(
        "groups_faulted", "sampling", "groups",
        "Drawn groups with fewer than two judgements; without any, where groups have one response.",
    ),
    _m(
        "surplus", "sampling", "groups",
        "Kept groups that the step did not need.",
    ),
    _m(
        "stale_groups", "sampling", "groups",
        "Groups of the batch that an earlier policy answered.",
    ),
    _m(
        "staleness", "sampling", "steps",
        "How far the weights that drew the batch are behind those that learn from it "
        "(`method.asynchrony`): all of a batch is drawn by the same, so this is mean and "
        "maximum.",
    ),
    _m(
        "replayed_groups", "sampling", "groups",
        "Of those, the ones that took the place of a group without advantage "
        "(`method.replay`).",
    ),
    _m(
        "compensation_groups", "sampling", "groups",
        "Of the stale ones, those whose remainder trains (`method.recomposition`).",
    ),
    _m(
        "continuations", "sampling", "responses",
        'Responses written from the cuts of others, with `estimator = "segments"` '
        "(arXiv 2505.23564). They are in no other line here.",
    ),
    _m(
        "continuation_tokens", "sampling", "tokens",
        "Tokens drawn for them, on top of generated_tokens.",
    ),
    _m(
        "continuation_faults", "sampling", "share",
        "Of them, those without a judgement: they are in no value, and count towards "
        "`reward.max_fault_ratio`.",
    ),
    _m(
        "surveyed", "sampling", "responses",
        "Responses asked for before the step, to tell `data.selection` of problems "
        '(`name = "vas"`). They are in no other line here.',
    ),
    _m(
        "segments_per_response", "sampling", "segments",
        "Mean over judged responses.",
    ),
    _m(
        "valued_states", "sampling", "states",
        "Different states that continuations valued.",
    ),
    _m(
        "valueless_states", "sampling", "states",
        "Those all of whose continuations faulted: the segments that begin or end there leave the "
        "loss.",
    ),
    _m(
        "hinted_groups", "sampling", "groups",
        "Answered again with the beginning of the solution in the prompt, as nobody was right "
        "(`method.hints`); samples.jsonl has the level of each.",
    ),
    _m(
        "selection_estimate", "sampling", "share",
        "Success that was expected of the step's problems before it; of those that something "
        "was known of. Null where `data.selection` expects nothing.",
    ),
    _m(
        "selection_entropy", "sampling", "share",
        "Entropy of the run's draws over problems / log(problems): 1 is even. Null with "
        "`uniform`.",
    ),
    _m(
        "selection_reached", "sampling", "share",
        "Problems that the run has drawn at least once. Null with `uniform`.",
    ),
    _m(
        "tasks", "sampling", "counts",
        "Rollouts by the task of their problem, where rows have one.",
    ),
    _m(
        "finished_share", "sampling", "share",
        "Slots whose response ended in this step. Null without method.truncation, as the five "
        "below.",
    ),
    _m(
        "tokens_per_decode_step", "sampling", "tokens",
        "generated_tokens over the forward passes that drew them: of each batch of "
        "rollout.batch slots the longest stretch, of the slowest process.",
    ),
    _m(
        "prefix_tokens", "sampling", "tokens",
        "Response tokens of earlier steps that the policy read again before it went on.",
    ),
    _m(
        "slot_age_mean", "sampling", "steps",
        "How many steps the unfinished responses have been drawn over; null without any.",
    ),
    _m(
        "slot_age_max", "sampling", "steps",
        "The oldest of them.",
    ),
    _m(
        "turns_first_correct", "turns", "share",
        "First attempts that are correct (Acc@t1).",
        shown="first_correct",
    ),
    _m(
        "turns_final_correct", "turns", "share",
        "Last attempts that are correct (Acc@final).",
        shown="final_correct",
    ),
    _m(
        "turns_revised", "turns", "share",
        "Dialogues with a second attempt.",
        shown="revised",
    ),
    _m(
        "turns_answer_changed", "turns", "share",
        "Of these, the last attempt states another answer than the first.",
        shown="answer_changed",
    ),
    _m(
        "turns_incorrect_to_correct", "turns", "share",
        "Wrong first attempts whose dialogue ended correct.",
        shown="incorrect_to_correct",
    ),
    _m(
        "turns_correct_to_incorrect", "turns", "share",
        "Correct first attempts whose dialogue ended wrong.",
        shown="correct_to_incorrect",
    ),
    _m(
        "turns_verifier_accuracy", "turns", "share",
        "Verifications whose verdict is true; one that cannot be read is not.",
        shown="verifier_accuracy",
    ),
    _m(
        "turns_correct_recall", "turns", "share",
        "Correct attempts that the verification called correct.",
        shown="correct_recall",
    ),
    _m(
        "turns_wrong_recall", "turns", "share",
        "Wrong attempts that the verification called wrong.",
        shown="wrong_recall",
    ),
    _m(
        "turns_unparsed", "turns", "share",
        "Verifications without a verdict that method.turns.parsing can read, faults included.",
        shown="unparsed",
    ),
    _m(
        "verifier_accuracy", "verifier", "share",
        "Verifications whose final verdict is true; one that cannot be read is not.",
        shown="accuracy",
    ),
    _m(
        "verifier_correct_recall", "verifier", "share",
        "Of correct solutions, those that were called correct.",
        shown="correct_recall",
    ),
    _m(
        "verifier_wrong_recall", "verifier", "share",
        "Of wrong solutions, those that were called wrong.",
        shown="wrong_recall",
    ),
    _m(
        "verifier_f1", "verifier", "share",
        "Harmonic mean of the two recalls; null where there was only one kind of solution.",
        shown="f1",
    ),
    _m(
        "verifier_form", "verifier", "share",
        "Mean share of the verdicts due, of K steps and the whole, that stand where they should.",
        shown="form",
    ),
    _m(
        "verifier_unparsed", "verifier", "share",
        "Verifications without a final verdict that method.cotraining.parsing can read.",
        shown="unparsed",
    ),
    _m(
        "verifier_says_correct", "verifier", "share",
        "Verifications whose final verdict is `correct`: 1 where the verifier always says yes.",
        shown="says_correct",
    ),
    _m(
        "verifier_steps_read", "verifier", "share",
        "Verifications with a verdict on every step; the others give no step rewards.",
        shown="steps_read",
    ),
    _m(
        "verifier_reach", "verifier", "share",
        "Of the generator's judged solutions, those that fit the verifier's context.",
        shown="reach",
    ),
    _m(
        "verifier_weight_correct", "verifier", "weight",
        "What the advantages of verifications of correct solutions are multiplied by.",
        shown="weight_correct",
    ),
    _m(
        "verifier_weight_wrong", "verifier", "weight",
        "The same of wrong solutions.",
        shown="weight_wrong",
    ),
    _m(
        "solutions_correct", "verifier", "share",
        "Of the judged solutions of a step of the verifier, those that are correct.",
    ),
    _m(
        "solution_steps", "verifier", "steps",
        "Mean steps of the generator's solutions that were verified.",
    ),
    _m(
        "steps_correct", "verifier", "share",
        "Of the steps of these, those that the verifier called correct.",
    ),
    _m(
        "loss", "policy", "loss",
        "What was minimised, mean over the step's updates.",
    ),
    _m(
        "policy_loss", "policy", "loss",
        "The policy's part of it, mean over tokens: without KL, entropy and LM terms, and "
        "before the aggregation weighs responses.",
    ),
    _m(
        "tokens", "policy", "tokens",
        "Response tokens in the loss, over all processes, in one pass over the batch.",
    ),
    _m(
        "entropy", "policy", "nats/token",
        "Mean of -sum p log p of the distributions that response tokens were drawn from.",
    ),
    _m(
        "clip_low", "policy", "share",
        "Tokens whose gradient the lower bound 1 - method.loss.clip_low cut off: A < 0 "
        "and ratio below it.",
    ),
    _m(
        "clip_high", "policy", "share",
        "Tokens whose gradient the upper bound 1 + method.loss.clip_high cut off: A > 0 "
        "and ratio above it.",
    ),
    _m(
        "dual_clip", "policy", "share",
        "Tokens at the dual bound: A < 0 and ratio above method.loss.dual_clip (arXiv "
        "1912.09729).",
    ),
    _m(
        "approx_kl", "policy", "nats/token",
        "How far the updates moved the policy from the one that sampled: mean of r - 1 - "
        "log r with r = pi / pi_old.",
    ),
    _m(
        "ratio_max", "policy", "ratio",
        "The largest pi / pi_old of a token, mean over the step's updates.",
    ),
    _m(
        "kl", "policy", "nats/token",
        "KL to the initial policy by method.loss.kl_estimator. Null where "
        "method.loss.kl_coef = 0, for every task: nothing to compare with is kept.",
    ),
    _m(
        "lm_loss", "policy", "nats/token",
        "Negative log-likelihood of the correct responses (arXiv 2504.05118).",
    ),
    _m(
        "lm_share", "policy", "share",
        "Tokens of correct responses among those in the loss.",
    ),
    _m(
        "grad_norm", "policy", "norm",
        "Of the policy's gradient before clipping, at the step's last update.",
    ),
    _m(
        "learning_rate", "policy", "",
        "Of the policy, after the step.",
    ),
    _m(
        "drift_mean", "drift", "nats/token",
        "Mean |log pi_trainer - log pi_sampler| of freshly sampled tokens before any "
        "update; compared with rollout.drift_alarm.",
        shown="mean_abs",
    ),
    _m(
        "drift_max", "drift", "nats",
        "The largest such difference.",
        shown="max_abs",
    ),
    _m(
        "drift_kl", "drift", "nats/token",
        "KL(sampler || trainer): mean of exp(d) - 1 - d with d = log pi_trainer - log "
        "pi_sampler.",
        shown="kl",
    ),
    _m(
        "importance_weight", "drift", "ratio",
        "Mean truncated weight min(pi_trainer / pi_sampler, method.loss.importance_cap) "
        "of the tokens in the loss. Null without the correction.",
    ),
    _m(
        "first_weight", "drift", "ratio",
        "Mean weight min(pi_old / drawn with, 1) of the first tokens in the loss, with "
        '`method.fire.mode = "exact"` (arXiv 2410.21236).',
    ),
    _m(
        "value_loss", "critic", "loss",
        "The critic's loss, mean over the step's updates.",
    ),
    _m(
        "value_skipped", "critic", "",
        "1 where fewer responses ended than method.truncation.min_finished, so that the critic "
        "learnt nothing; null without truncation.",
    ),
    _m(
        "value_clipped", "critic", "share",
        "Values whose gradient method.critic.clip cut off (loss `clipped`).",
    ),
    _m(
        "value_outside", "critic", "share",
        "Targets beyond method.critic.value_min and value_max, which bins cannot say.",
    ),
    _m(
        "explained_variance", "critic", "share",
        "1 - Var(return - value) / Var(return) over response tokens, before the critic "
        "learns from them; at most 1, below 0 where a constant would do better.",
    ),
    _m(
        "value_mean", "critic", "reward",
        "Mean value of the states before response tokens.",
    ),
    _m(
        "return_mean", "critic", "reward",
        "Mean of the critic's targets.",
    ),
    _m(
        "return_std", "critic", "reward",
        "Their deviation: without one there is nothing to explain, and explained_variance is null.",
    ),
    _m(
        "value_grad_norm", "critic", "norm",
        "Of the critic's gradient before clipping.",
    ),
    _m(
        "value_learning_rate", "critic", "",
        "Of the critic, after the step.",
    ),
    _m(
        "lam_mean", "critic", "",
        "Mean lambda of the responses; differs from method.advantage.lam where it adapts "
        "to their length (arXiv 2504.05118).",
    ),
    _m(
        "lam_floor_share", "critic", "share",
        "Responses so short that their lambda is method.advantage.min_lam.",
    ),
    _m(
        "step_s", "time", "s",
        "The step, from one log to the next.",
    ),
    _m(
        "generate_s", "time", "s",
        "Generation, as the first process saw it; judging goes on behind it.",
    ),
    _m(
        "generate_wait_s", "time", "s",
        "Waiting for responses that are drawn beside the training (`method.asynchrony`); null "
        "where the step generates.",
    ),
    _m(
        "verify_s", "time", "s",
        "Verifying the solutions of the generator's step; a part of train_s.",
    ),
    _m(
        "solve_s", "time", "s",
        "Solving problems for the verifier's step, with judgements; a part of train_s.",
    ),
    _m(
        "score_wait_s", "time", "s",
        "Waiting for judgements after the last response was there.",
    ),
    _m(
        "train_s", "time", "s",
        "The rest: step_s - generate_s - score_wait_s, with generate_wait_s in the place of "
        "generate_s where there is one. Log-probabilities, values, "
        "advantages, updates.",
    ),
    _m(
        "tokens_per_s", "time", "tokens/s",
        "generated_tokens / generate_s, all processes together.",
    ),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.key: metric for metric in _TABLE}
COUNTS = frozenset(metric.key for metric in _TABLE if metric.unit == "counts")
"""Columns that hold an object of numbers by name."""
