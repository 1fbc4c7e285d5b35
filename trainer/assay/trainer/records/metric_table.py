"""Every number that a step may have: its name, unit, meaning and source.

Those of every run stand here, those of a method in its room (`Method.metrics`).

metrics.jsonl has a column for each; docs/metrics.md is written from here by scripts/metrics_doc.py;
TensorBoard, Weights & Biases and trackio show them under `group/shown`.
"""

from __future__ import annotations

from assay.rpc.errors import ConfigError
from assay.trainer.settings.metric import Metric, metric
from assay.trainer.settings.registry import methods

_GROUPS: dict[str, str] = {
    "reward": "Rewards and verdicts, over the judged rollouts of the step",
    "faults": "Rollouts without a judgement",
    "response": "Responses, over all rollouts of the step",
    "sampling": "How the step's groups came together",
    "policy": "The update",
    "drift": "Sampler against trainer",
    "critic": "The value function (estimator `gae`)",
    "time": "Time",
}

_TABLE = (
    metric(
        "reward", "reward", "reward",
        "Mean reward of the judgements, before any shaping.",
        shown="mean",
    ),
    metric(
        "reward_std", "reward", "reward",
        "Sample deviation (n - 1) of those rewards.",
        shown="std",
    ),
    metric(
        "shaped_reward", "reward", "reward",
        "Mean of what trains: the reward with penalties for length and repetition. Null "
        "without shaping.",
        shown="shaped",
    ),
    metric(
        "correct", "reward", "share",
        "Judged rollouts with the verdict `correct`. Dropped groups count, so that this is "
        "the policy's accuracy, not that of the batch.",
    ),
    metric(
        "verdicts", "reward", "counts",
        "Judged rollouts by verdict.",
    ),
    metric(
        "signal_ratio", "reward", "share",
        "Groups of the batch with an advantage other than 0: the others teach nothing. Of "
        "responses, with truncation.",
    ),
    metric(
        "left_out_ratio", "reward", "share",
        "Judged responses of the batch none of whose tokens are in the loss: cut ones with "
        "`overlong = \"filter\"`, void ones, what recomposition leaves to another step, responses "
        "without an unsure token with segments. Those that PROF or the spread of rewards drop are "
        "not counted as judged.",
    ),
    metric(
        "advantage_std", "reward", "advantage",
        "Deviation of the advantages over the tokens in the loss.",
    ),
    metric(
        "fault_ratio", "faults", "share",
        "Rollouts without a judgement, dialogues with an attempt without one included. They are in "
        "no mean of rewards and in no loss, but for turns that earn nothing from what is missing.",
        shown="ratio",
    ),
    metric(
        "faults", "faults", "counts",
        "Rollouts without a judgement by reason; see errors.md.",
    ),
    metric(
        "responses", "response", "responses",
        "Rollouts that were asked for and came back, judged or not, over all processes, "
        "those of dropped groups included.",
        shown="count",
    ),
    metric(
        "generated_tokens", "response", "tokens",
        "Their tokens, end-of-sequence included. With truncation: those that this step drew; the "
        "other lines here are about the responses that ended in it.",
    ),
    metric(
        "response_length", "response", "tokens",
        "Their mean length.",
        shown="length_mean",
    ),
    metric(
        "response_length_p95", "response", "tokens",
        "The length that 95 % of them do not exceed.",
        shown="length_p95",
    ),
    metric(
        "truncated", "response", "share",
        "Cut at rollout.max_new_tokens.",
    ),
    metric(
        "draws", "sampling", "groups",
        "Prompts answered in this step: drawn, and as often again as they were hinted at.",
    ),
    metric(
        "rounds", "sampling", "rounds",
        "Times that the policy was asked.",
    ),
    metric(
        "generated_per_used", "sampling", "ratio",
        "draws / rollout.prompts_per_step; with dynamic sampling near 1 / P(keep) [derivation].",
    ),
    metric(
        "groups_all_correct", "sampling", "groups",
        "Drawn groups whose judged responses are all correct.",
    ),
    metric(
        "groups_all_wrong", "sampling", "groups",
        "Drawn groups of which none is correct.",
    ),
    metric(
        "groups_faulted", "sampling", "groups",
        "Drawn groups with fewer than two judgements; without any, where groups have one response.",
    ),
    metric(
        "surplus", "sampling", "groups",
        "Kept groups that the step did not need.",
    ),
    metric(
        "stale_groups", "sampling", "groups",
        "Groups of the batch that an earlier policy answered.",
    ),
    metric(
        "surveyed", "sampling", "responses",
        "Responses asked for before the step, to tell `data.selection` of problems "
        '(`name = "vas"`). They are in no other line here.',
    ),
    metric(
        "selection_estimate", "sampling", "share",
        "Success that was expected of the step's problems before it; of those that something "
        "was known of. Null where `data.selection` expects nothing.",
    ),
    metric(
        "selection_entropy", "sampling", "share",
        "Entropy of the run's draws over problems / log(problems): 1 is even. Null with "
        "`uniform`.",
    ),
    metric(
        "selection_reached", "sampling", "share",
        "Problems that the run has drawn at least once. Null with `uniform`.",
    ),
    metric(
        "tasks", "sampling", "counts",
        "Rollouts by the task of their problem, where rows have one.",
    ),
    metric(
        "loss", "policy", "loss",
        "What was minimised, mean over the step's updates.",
    ),
    metric(
        "policy_loss", "policy", "loss",
        "The policy's part of it, mean over tokens: without KL, entropy and LM terms, and "
        "before the aggregation weighs responses.",
    ),
    metric(
        "tokens", "policy", "tokens",
        "Response tokens in the loss, over all processes, in one pass over the batch.",
    ),
    metric(
        "entropy", "policy", "nats/token",
        "Mean of -sum p log p of the distributions that response tokens were drawn from.",
    ),
    metric(
        "clip_low", "policy", "share",
        "Tokens whose gradient the lower bound 1 - method.loss.clip_low cut off: A < 0 "
        "and ratio below it.",
    ),
    metric(
        "clip_high", "policy", "share",
        "Tokens whose gradient the upper bound 1 + method.loss.clip_high cut off: A > 0 "
        "and ratio above it.",
    ),
    metric(
        "dual_clip", "policy", "share",
        "Tokens at the dual bound: A < 0 and ratio above method.loss.dual_clip (arXiv "
        "1912.09729).",
    ),
    metric(
        "approx_kl", "policy", "nats/token",
        "How far the updates moved the policy from the one that sampled: mean of r - 1 - "
        "log r with r = pi / pi_old.",
    ),
    metric(
        "ratio_max", "policy", "ratio",
        "The largest pi / pi_old of a token, mean over the step's updates.",
    ),
    metric(
        "kl", "policy", "nats/token",
        "KL to the initial policy by method.loss.kl_estimator. Null where "
        "method.loss.kl_coef = 0, for every task: nothing to compare with is kept.",
    ),
    metric(
        "lm_loss", "policy", "nats/token",
        "Negative log-likelihood of the correct responses (arXiv 2504.05118).",
    ),
    metric(
        "lm_share", "policy", "share",
        "Tokens of correct responses among those in the loss.",
    ),
    metric(
        "padding_ratio", "policy", "ratio",
        "Positions that the forward passes of the updates computed / tokens among them, of prompts "
        "and responses; 1 is no padding. See `optim.micro_batch_tokens`.",
    ),
    metric(
        "grad_norm", "policy", "norm",
        "Of the policy's gradient before clipping, at the step's last update.",
    ),
    metric(
        "learning_rate", "policy", "",
        "Of the policy, after the step.",
    ),
    metric(
        "drift_mean", "drift", "nats/token",
        "Mean |log pi_trainer - log pi_sampler| of freshly sampled tokens before any "
        "update; compared with rollout.drift_alarm.",
        shown="mean_abs",
    ),
    metric(
        "drift_max", "drift", "nats",
        "The largest such difference.",
        shown="max_abs",
    ),
    metric(
        "drift_kl", "drift", "nats/token",
        "KL(sampler || trainer): mean of exp(d) - 1 - d with d = log pi_trainer - log "
        "pi_sampler.",
        shown="kl",
    ),
    metric(
        "importance_weight", "drift", "ratio",
        "Mean weight of the tokens in the loss, by method.loss.importance_correction: the ratio "
        "pi_trainer / pi_sampler within its limits. Null without a correction.",
    ),
    metric(
        "importance_ratio", "drift", "ratio",
        "Mean of that ratio before the limits; of the whole response, where that has one.",
    ),
    metric(
        "importance_outside", "drift", "share",
        "Tokens in the loss whose ratio is beyond a limit: cut, or masked.",
    ),
    metric(
        "importance_outside_rows", "drift", "share",
        "Responses whose ratio is; null where each token has its own.",
    ),
    metric(
        "value_loss", "critic", "loss",
        "The critic's loss, mean over the step's updates.",
    ),
    metric(
        "value_clipped", "critic", "share",
        "Values whose gradient method.critic.clip cut off (loss `clipped`).",
    ),
    metric(
        "value_outside", "critic", "share",
        "Targets beyond method.critic.value_min and value_max, which bins cannot say.",
    ),
    metric(
        "explained_variance", "critic", "share",
        "1 - Var(return - value) / Var(return) over response tokens, before the critic "
        "learns from them; at most 1, below 0 where a constant would do better.",
    ),
    metric(
        "value_mean", "critic", "reward",
        "Mean value of the states before response tokens.",
    ),
    metric(
        "return_mean", "critic", "reward",
        "Mean of the critic's targets.",
    ),
    metric(
        "return_std", "critic", "reward",
        "Their deviation: without one there is nothing to explain, and explained_variance is null.",
    ),
    metric(
        "value_grad_norm", "critic", "norm",
        "Of the critic's gradient before clipping.",
    ),
    metric(
        "value_learning_rate", "critic", "",
        "Of the critic, after the step.",
    ),
    metric(
        "lam_mean", "critic", "",
        "Mean lambda of the responses; differs from method.advantage.lam where it adapts "
        "to their length (arXiv 2504.05118).",
    ),
    metric(
        "lam_floor_share", "critic", "share",
        "Responses so short that their lambda is method.advantage.min_lam.",
    ),
    metric(
        "step_s", "time", "s",
        "The step, from one log to the next.",
    ),
    metric(
        "generate_s", "time", "s",
        "Generation, as the first process saw it; judging goes on behind it.",
    ),
    metric(
        "score_wait_s", "time", "s",
        "Waiting for judgements after the last response was there.",
    ),
    metric(
        "held_s", "time", "s",
        "Of score_wait_s: held while the reward services were away (reward.max_outage_s), on the "
        "first process.",
    ),
    metric(
        "train_s", "time", "s",
        "The rest: step_s - generate_s - score_wait_s, with generate_wait_s in the place of "
        "generate_s where there is one. Log-probabilities, values, "
        "advantages, updates.",
    ),
    metric(
        "tokens_per_s", "time", "tokens/s",
        "generated_tokens / generate_s, all processes together.",
    ),
)  # fmt: skip

_BEHIND_METHODS = "policy"
"""The groups that methods bring stand before this one: they are about rollouts."""


def _groups() -> dict[str, str]:
    brought = {name: text for method in methods() for name, text in method.metric_groups.items()}
    place = list(_GROUPS).index(_BEHIND_METHODS)
    first, last = list(_GROUPS.items())[:place], list(_GROUPS.items())[place:]
    return {**dict(first), **brought, **dict(last)}


def _metrics() -> dict[str, Metric]:
    every = [*_TABLE, *(one for method in methods() for one in method.metrics)]
    for one in every:
        if one.group not in GROUPS:
            raise ConfigError(
                f"metric {one.key}: nobody heads the group {one.group!r}; name it in metric_groups "
                f"of its method, or use one of {', '.join(GROUPS)}"
            )
    return {one.key: one for group in GROUPS for one in every if one.group == group}


GROUPS = _groups()
METRICS = _metrics()
COUNTS = frozenset(one.key for one in METRICS.values() if one.unit == "counts")
"""Columns that hold an object of numbers by name."""
