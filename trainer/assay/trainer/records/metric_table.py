"""Every number of a step: its name, unit, meaning and source.

Methods declare further ones (`TrainingMethod.metrics`). metrics.jsonl has a column for each;
docs/train/metrics.md is written from here by scripts/metrics_doc.py; TensorBoard, Weights & Biases
and trackio show them under `group/shown`.
"""

from __future__ import annotations

from assay.kit.errors import ConfigError
from assay.trainer.settings.metric import Metric, metrics
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
    *metrics("reward",
        ("reward", "reward", "Mean reward of the judgements, before any shaping.", "mean"),
        ("reward_std", "reward", "Sample deviation (n - 1) of those rewards.", "std"),
        ("shaped_reward", "reward",
         ("Mean of what trains: the reward with penalties for length and repetition. Null without "
          "shaping."), "shaped"),
        ("correct", "share",
         ("Judged rollouts with the verdict `correct`. Dropped groups count, so that this is the "
          "policy's accuracy, not that of the batch.")),
        ("verdicts", "counts", "Judged rollouts by verdict."),
        ("signal_ratio", "share",
         ("Groups of the batch with an advantage other than 0: the others teach nothing. Of "
          "responses, with truncation.")),
        ("left_out_ratio", "share",
         ("Judged responses of the batch none of whose tokens are in the loss: cut ones with "
          '`overlong = "filter"`, void ones, what recomposition leaves to another step, responses '
          "without an unsure token with segments. Those that PROF or the spread of rewards drop "
          "are not counted as judged.")),
        ("advantage_std", "advantage", "Deviation of the advantages over the tokens in the loss."),
    ),
    *metrics("faults",
        ("fault_ratio", "share",
         ("Rollouts without a judgement, dialogues with an attempt without one included. They are "
          "in no mean of rewards and in no loss, but for turns that earn nothing from what is "
          "missing."), "ratio"),
        ("faults", "counts", "Rollouts without a judgement by reason; see errors.md."),
    ),
    *metrics("response",
        ("responses", "responses",
         ("Rollouts that were asked for and came back, judged or not, over all processes, those "
          "of dropped groups included."), "count"),
        ("generated_tokens", "tokens",
         ("Their tokens, end-of-sequence included. With truncation: those that this step drew; "
          "the other lines here are about the responses that ended in it.")),
        ("response_length", "tokens", "Their mean length.", "length_mean"),
        ("response_length_p95", "tokens",
         "The length that 95 % of them do not exceed.", "length_p95"),
        ("truncated", "share", "Cut at rollout.max_new_tokens."),
    ),
    *metrics("sampling",
        ("draws", "groups",
         "Prompts answered in this step: drawn, and as often again as they were hinted at."),
        ("rounds", "rounds", "Times that the policy was asked."),
        ("generated_per_used", "ratio",
         ("draws / rollout.prompts_per_step; with dynamic sampling near 1 / P(keep) "
          "[derivation].")),
        ("groups_all_correct", "groups", "Drawn groups whose judged responses are all correct."),
        ("groups_all_wrong", "groups", "Drawn groups of which none is correct."),
        ("groups_faulted", "groups",
         ("Drawn groups with fewer than two judgements; without any, where groups have one "
          "response.")),
        ("surplus", "groups", "Kept groups that the step did not need."),
        ("stale_groups", "groups", "Groups of the batch that an earlier policy answered."),
        ("surveyed", "responses",
         ("Responses asked for before the step, to inform `data.selection` (`name = "
          '"vas"`). They are in no other line here.')),
        ("selection_estimate", "share",
         ("Success that was expected of the step's problems before it; of those that something "
          "was known of. Null where `data.selection` expects nothing.")),
        ("selection_entropy", "share",
         ("Entropy of the run's draws over problems / log(problems): 1 is even. Null with "
          "`uniform`.")),
        ("selection_reached", "share",
         "Problems that the run has drawn at least once. Null with `uniform`."),
        ("tasks", "counts", "Rollouts by the task of their problem, where rows have one."),
    ),
    *metrics("policy",
        ("loss", "loss", "What was minimised, mean over the step's updates."),
        ("policy_loss", "loss",
         ("The policy's part of it, mean over tokens: without KL, entropy and LM terms, and "
          "before the aggregation weighs responses.")),
        ("tokens", "tokens",
         "Response tokens in the loss, over all processes, in one pass over the batch."),
        ("entropy", "nats/token",
         "Mean of -sum p log p of the distributions that response tokens were drawn from."),
        ("clip_low", "share",
         ("Tokens whose gradient the lower bound 1 - method.loss.clip_low cut off: A < 0 and "
          "ratio below it.")),
        ("clip_high", "share",
         ("Tokens whose gradient the upper bound 1 + method.loss.clip_high cut off: A > 0 and "
          "ratio above it.")),
        ("dual_clip", "share",
         ("Tokens at the dual bound: A < 0 and ratio above method.loss.dual_clip (arXiv "
          "1912.09729).")),
        ("approx_kl", "nats/token",
         ("How far the updates moved the policy from the one that sampled: mean of r - 1 - log r "
          "with r = pi / pi_old.")),
        ("ratio_max", "ratio", "The largest pi / pi_old of a token, mean over the step's updates."),
        ("kl", "nats/token",
         ("KL to the initial policy by method.loss.kl_estimator. Null where method.loss.kl_coef = "
          "0, for every task: nothing to compare with is kept.")),
        ("lm_loss", "nats/token",
         "Negative log-likelihood of the correct responses (arXiv 2504.05118)."),
        ("lm_share", "share", "Tokens of correct responses among those in the loss."),
        ("padding_ratio", "ratio",
         ("Positions that the forward passes of the updates computed / tokens among them, of "
          "prompts and responses; 1 is no padding. See `optim.micro_batch_tokens`.")),
        ("grad_norm", "norm",
         "Of the policy's gradient before clipping, at the step's last update."),
        ("learning_rate", "", "Of the policy, after the step."),
    ),
    *metrics("drift",
        ("drift_mean", "nats/token",
         ("Mean |log pi_trainer - log pi_sampler| of freshly sampled tokens before any update; "
          "compared with rollout.drift_alarm."), "mean_abs"),
        ("drift_max", "nats", "The largest such difference.", "max_abs"),
        ("drift_kl", "nats/token",
         ("KL(sampler || trainer): mean of exp(d) - 1 - d with d = log pi_trainer - log "
          "pi_sampler."), "kl"),
        ("importance_weight", "ratio",
         ("Mean weight of the tokens in the loss, by method.loss.importance_correction: the ratio "
          "pi_trainer / pi_sampler within its limits. Null without a correction.")),
        ("importance_ratio", "ratio",
         "Mean of that ratio before the limits; of the whole response, where that has one."),
        ("importance_outside", "share",
         "Tokens in the loss whose ratio is beyond a limit: cut, or masked."),
        ("importance_outside_rows", "share",
         "Responses whose ratio is; null where each token has its own."),
    ),
    *metrics("critic",
        ("value_loss", "loss", "The critic's loss, mean over the step's updates."),
        ("value_clipped", "share",
         "Values whose gradient method.critic.clip cut off (loss `clipped`)."),
        ("value_outside", "share",
         "Targets beyond method.critic.value_min and value_max, which bins cannot say."),
        ("explained_variance", "share",
         ("1 - Var(return - value) / Var(return) over response tokens, before the critic learns "
          "from them; at most 1, below 0 where a constant would do better.")),
        ("value_mean", "reward", "Mean value of the states before response tokens."),
        ("return_mean", "reward", "Mean of the critic's targets."),
        ("return_std", "reward",
         ("Their deviation: without one there is nothing to explain, and explained_variance is "
          "null.")),
        ("value_grad_norm", "norm", "Of the critic's gradient before clipping."),
        ("value_learning_rate", "", "Of the critic, after the step."),
        ("lam_mean", "",
         ("Mean lambda of the responses; differs from method.advantage.lam where it adapts to "
          "their length (arXiv 2504.05118).")),
        ("lam_floor_share", "share",
         "Responses so short that their lambda is method.advantage.min_lam."),
    ),
    *metrics("time",
        ("step_s", "s", "The step, from one log to the next."),
        ("generate_s", "s", "Generation, as the first process saw it; judging goes on behind it."),
        ("score_wait_s", "s", "Waiting for judgements after the last response was there."),
        ("held_s", "s",
         ("Of score_wait_s: held while the reward services were away (reward.max_outage_s), on "
          "the first process.")),
        ("train_s", "s",
         ("The rest: step_s - generate_s - score_wait_s, with generate_wait_s in the place of "
          "generate_s where there is one. Log-probabilities, values, advantages, updates.")),
        ("tokens_per_s", "tokens/s", "generated_tokens / generate_s, all processes together."),
        ("old_logps_s", "s",
         ("Of train_s, as the three below of the first process: log-probabilities of the policy "
          "before its updates. Null where one update needs none.")),
        ("reference_s", "s", "Log-probabilities of the initial policy. Null without a KL."),
        ("values_s", "s", "The critic's values. Null without a critic of its own pass."),
        ("update_s", "s", "Forward and backward passes of the updates, the critic's too."),
        ("weight_sync_s", "s",
         "Of generate_s: an engine with weights of its own took on new ones. Null for hf."),
        ("preemptions", "times",
         ("That a response gave up its place in the first process's cache, and was read again "
          "later: above 0, more of rollout.vllm.gpu_memory_utilization or a lower rollout.batch "
          "saves what is read twice. `paged` counts them, and `vllm` in the process; null for an "
          "engine that does not.")),
        ("update_tokens_per_s", "tokens/s",
         "Tokens of prompts and responses that a process learnt from, without padding / update_s."),
        ("mfu", "share",
         ("Of run.peak_tflops that the updates used: 6 operations for each token and weight of a "
          "linear layer, 4 where it does not learn; attention is left out. Null where the peak is "
          "not given.")),
        ("peak_memory_gib", "GiB",
         "The most that PyTorch held on the first process's device in the step. Null on a CPU."),
    ),
)  # fmt: skip

_BEHIND_METHODS = "policy"
"""The group before which those of methods come."""


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
                f"metric {one.key}: no heading for {one.group!r}; name the group in metric_groups "
                f"of its method, or use one of {', '.join(GROUPS)}"
            )
    return {one.key: one for group in GROUPS for one in every if one.group == group}


GROUPS = _groups()
METRICS = _metrics()
COUNTS = frozenset(one.key for one in METRICS.values() if one.unit == "counts")
"""Columns that hold an object of numbers by name."""
