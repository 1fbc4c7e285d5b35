"""What own.json holds: each function of the reference on numbers that can be checked by hand.

PYTHONPATH=tests python -m golden.cases > tests/golden/own.json
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

from golden import reference as ref
from golden import reference_contamination as found
from golden import reference_sampled as sampled
from golden import reference_small as small

NEW = [[-1.0, -2.0, -0.5], [-0.5, -0.25, -3.0]]
OLD = [[-1.0, -1.5, -1.5], [-3.5, -0.25, -3.5]]
SIGNS = [[1.0, -1.0, 2.0], [-2.0, 0.0, 1.0]]
MASK = [[1, 1, 1], [1, 1, 0]]
LOSSES = [[4.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0]]
LENGTHS = [[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]
ENDS = [0.0, 0.0, 0.0, 1.0]
VALUES = [0.2, 0.4, 0.5, 0.7]
PPO = {"logprobs": NEW, "old_logprobs": OLD, "advantages": SIGNS}

CASES: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    (ref.gae, "VC-PPO, arXiv 2503.01491", {"rewards": ENDS, "values": VALUES, "lam": 0.95}),
    (
        ref.gae,
        "GAE, arXiv 1506.02438",
        {"rewards": ENDS, "values": VALUES, "lam": 0.5, "gamma": 0.9},
    ),
    (
        ref.gae,
        "GAE, arXiv 1506.02438",
        {"rewards": ENDS, "values": VALUES, "lam": 1.0, "bootstrap_value": 0.5},
    ),
    (
        ref.decoupled_gae,
        "VC-PPO, arXiv 2503.01491",
        {"rewards": ENDS, "values": VALUES, "lam_actor": 0.95, "lam_critic": 1.0},
    ),
    (ref.egae_truncated, "T-PPO, arXiv 2506.15050", {"values": VALUES, "lam": 0.95}),
    (
        ref.turn_independent_gae,
        "PAG, arXiv 2506.10406",
        {
            "rewards": [0.0, 1.0, 0.0, 0.5],
            "values": [0.25, 0.5, 9.0, 0.25],
            "mask": [1, 1, 0, 1],
        },
    ),
    *(
        (ref.length_adaptive_lambda, "VAPO, arXiv 2504.05118", {"length": length, "alpha": 0.05})
        for length in (5, 20, 40, 100, 1000, 8192, 16384)
    ),
    (
        ref.length_adaptive_lambda,
        "VAPO, arXiv 2504.05118",
        {"length": 40, "alpha": 0.05, "floor": 0.9},
    ),
    (
        ref.explained_variance,
        "VC-PPO, arXiv 2503.01491",
        {
            "values": [[0.0, 0.5], [0.5, 7.0]],
            "returns": [[0.0, 1.0], [1.0, 7.0]],
            "mask": [[1, 1], [1, 0]],
        },
    ),
    (
        ref.group_advantage,
        "DAPO, arXiv 2503.14476",
        {"rewards": [1.0, 0.0, None, 0.0], "eps": 1e-6},
    ),
    (
        ref.group_advantage,
        "DAPO, arXiv 2503.14476",
        {"rewards": [1.0, -1.0, -1.0, -1.0], "eps": 1e-4},
    ),
    (ref.group_advantage, "a fault is no sample", {"rewards": [1.0, None, None], "eps": 1e-6}),
    (ref.dr_grpo_advantage, "arXiv 2503.20783", {"rewards": [1.0, 0.0, 0.0, 0.0]}),
    (ref.rloo_advantage, "RLOO, arXiv 2402.14740", {"rewards": [1.0, 0.0, 0.0, 0.0]}),
    (ref.rloo_advantage, "RLOO, arXiv 2402.14740", {"rewards": [1.0, 0.0, None, 0.5]}),
    (
        ref.role_advantage_normalisation,
        "PAG, arXiv 2506.10406",
        {
            "advantages": [[1.0, 3.0, 50.0, -1.0], [2.0, 50.0, 1.0, 0.0]],
            "mask": [[1, 1, 0, 1], [1, 0, 1, 1]],
        },
    ),
    (
        ref.task_advantage_normalisation,
        "PAG, arXiv 2506.10406",
        {
            "advantages": [[1.0, 3.0], [10.0, 30.0], [2.0, 99.0], [5.0, 99.0]],
            "mask": [[1, 1], [1, 1], [1, 0], [1, 0]],
            "tasks": [4, -1, 4, 7],
        },
    ),
    (
        ref.sigma_filter,
        "StableReinforce, arXiv 2505.02835",
        {
            "advantages": [[0.0, 0.5, -0.5, 0.0], [0.25, 8.0, 0.0, 99.0]],
            "mask": [[1, 1, 1, 1], [1, 1, 1, 0]],
            "sigmas": 2.0,
        },
    ),
    (
        ref.ppo_token_losses_dual_clip,
        "DAPO, arXiv 2503.14476",
        {**PPO, "eps_low": 0.2, "eps_high": 0.28},
    ),
    (
        ref.ppo_token_losses_dual_clip,
        "DAPO, arXiv 2503.14476",
        {**PPO, "eps_low": 0.2, "eps_high": 0.28, "dual_clip": 10.0},
    ),
    (
        ref.gspo_token_losses,
        "arXiv 2507.18071",
        {**PPO, "advantages": [1.0, -1.0], "mask": MASK, "eps_low": 0.2, "eps_high": 0.2},
    ),
    (ref.cispo_token_losses, "arXiv 2506.13585", {**PPO, "eps_low": 0.2, "eps_high": 1.0}),
    *(
        (
            ref.decoupled_ppo_token_losses,
            "AReaL, arXiv 2505.24298",
            {
                "logprobs": NEW,
                "proximal_logprobs": OLD,
                "behaviour_logprobs": NEW,
                "advantages": SIGNS,
                "eps": 0.2,
                **cap,
            },
        )
        for cap in ({}, {"cap": 1.5})
    ),
    (
        ref.pre_clip_ratio,
        "StableReinforce, arXiv 2505.02835",
        {"logprobs": [[0.0, -9.0]], "old_logprobs": [[-8.0, -1.0]], "low": 1e-3, "high": 1e3},
    ),
    (ref.importance_weights, "TRL 1.16", {"trainer": NEW, "sampler": OLD, "cap": 2.0}),
    *(
        (
            ref.importance_weights,
            spec,
            {"trainer": NEW, "sampler": OLD, "cap": cap, "low": low, "way": way},
        )
        for spec, way, low, cap in (
            ("TRL 1.16", "token-truncate", 0.75, 2.0),
            ("TRL 1.16", "sequence-truncate", 0.0, 2.0),
            ("TRL 1.16", "token-mask", 0.0, 3.0),
            ("TRL 1.16", "sequence-mask", 0.0, 3.0),
            ("IcePop, arXiv 2510.18855", "icepop", 0.75, 5.0),
        )
    ),
    *(
        (
            ref.aggregate_loss,
            "DAPO, arXiv 2503.14476",
            {"losses": LOSSES, "mask": LENGTHS, "mode": mode},
        )
        for mode in ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum")
    ),
    (
        ref.aggregate_loss,
        "arXiv 2503.20783",
        {"losses": LOSSES, "mask": LENGTHS, "mode": "constant", "max_length": 8},
    ),
    *(
        (
            ref.positive_example_lm_loss,
            "VAPO, arXiv 2504.05118",
            {"logprobs": NEW, "mask": MASK, "correct": correct},
        )
        for correct in ([1, 1], [0, 1], [0, 0])
    ),
    *(
        (
            ref.kl_estimate,
            "joschu.net/blog/kl-approx.html",
            {
                "logprobs": [-1.0, -0.5, -2.0],
                "ref_logprobs": [-1.5, -1.0, -1.0],
                "estimator": name,
            },
        )
        for name in ("k1", "k2", "k3")
    ),
    (
        ref.mean_entropy,
        "entropy",
        {"logits": [[[0.0, 0.0], [0.0, math.log(3)], [9.0, 0.0]]], "mask": [[1, 1, 0]]},
    ),
    (
        ref.mse_value_loss,
        "VC-PPO, arXiv 2503.01491",
        {"values": [0.5, -1.0], "returns": [1.0, 1.0]},
    ),
    (
        ref.clipped_value_loss,
        "VC-PPO, arXiv 2503.01491",
        {
            "values": [0.0, 0.9, 0.5],
            "old_values": [1.0, 0.0, 0.5],
            "returns": [0.0, 1.0, 1.0],
            "clip": 0.2,
        },
    ),
    (
        ref.hl_gauss,
        "HL-Gauss, arXiv 2403.03950",
        {"targets": [0.0, 0.3, 1.0, -7.0], "low": -1, "high": 1, "bins": 5, "sigma_ratio": 0.75},
    ),
    (ref.two_hot, "two-hot", {"targets": [0.0, 0.3, 1.0, -7.0], "low": -1, "high": 1, "bins": 5}),
    (
        ref.histogram_cross_entropy,
        "HL-Gauss, arXiv 2403.03950",
        {"logits": [[0.0, 0.0], [0.0, math.log(3)]], "probabilities": [[0.5, 0.5], [0.0, 1.0]]},
    ),
    *(
        (
            ref.soft_overlong,
            "DAPO, arXiv 2503.14476",
            {"length": length, "max_length": 20480, "cache_length": 4096, "factor": 1.0},
        )
        for length in (100, 16384, 18432, 20480, 20481)
    ),
    *(
        (
            ref.backward_reward,
            "arXiv 2510.00915, theorem 1",
            {"verdict": verdict, "false_positive": fp, "false_negative": fn},
        )
        for verdict in (0, 1)
        for fp, fn in ((0.05, 0.3), (0.8, 0.0), (0.0, 0.0))
    ),
    *(
        (
            ref.forward_weight,
            "arXiv 2510.00915, theorem 2",
            {"verdict": verdict, "false_negative": 0.3},
        )
        for verdict in (0, 1)
    ),
    *(
        (
            ref.appealed_reward,
            "derivation for arXiv 2510.00915",
            {"first": first, "second": second, "probability": 0.25},
        )
        for first, second in ((0, 0), (0, 1), (1, 0), (1, 1))
    ),
    *(
        (
            ref.cosine_length_reward,
            "arXiv 2502.03373",
            {
                "correct": correct,
                "length": length,
                "max_length": 1000,
                "correct_range": [0.5, 1.0],
                "wrong_range": [-1.0, -0.5],
                "exceed": -2.0,
                "margin": 16,
            },
        )
        for correct, length in ((True, 0), (True, 500), (False, 0), (False, 500), (True, 984))
    ),
    (
        ref.ngram_repetition_penalty,
        "arXiv 2502.03373",
        {"tokens": [7, 7, 7, 7, 7], "n": 2, "max_penalty": -1.0},
    ),
    (
        ref.ngram_repetition_penalty,
        "arXiv 2502.03373",
        {"tokens": [1], "n": 2, "max_penalty": -1.0},
    ),
    (
        ref.process_advantages,
        "arXiv 2402.03300, 4.1.3",
        {
            "step_rewards": [[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, -1.0, 0.0], [9.0, 0.0, 0.0, 0.0]],
            "steps": [[0, 1, 0, 1], [1, 0, 1, 0], [1, 0, 0, 0]],
            "groups": [3, 3, 8],
            "eps": 1e-6,
        },
    ),
    (
        ref.tango_step_advantages,
        "RL Tango, arXiv 2505.15034",
        {"outcome_rewards": [1, 0], "steps": [[[1, 1], [3, 1]], [[2, -1]]], "alpha": 0.5},
    ),
    *(
        (
            ref.prm_dense_line_rewards,
            "arXiv 2410.17621",
            {
                "line_scores": [1, 1, -1, -1],
                "passed": passed,
                "lam_fail": 0.25,
                "lam_pass": 0.025,
            },
        )
        for passed in (False, True)
    ),
    (ref.prm_prefix_search, "arXiv 2410.17621", {"line_count": 15, "largest_feasible_prefix": 15}),
    (
        ref.pag_turn_rewards,
        "PAG, arXiv 2506.10406",
        {"accuracies": [0, 1], "judgements": ["wrong", "wrong"], "alpha": 1.0},
    ),
    (
        ref.debiased_win_probability,
        "Pairwise-RL, arXiv 2504.04950",
        {
            "logit_a_forward": 2,
            "logit_b_forward": 0,
            "logit_a_reverse": 2,
            "logit_b_reverse": 0,
        },
    ),
    (
        ref.prof_filter,
        "PROF, arXiv 2509.03403",
        {"correct": [1, 1, 1, 0, 0, 1], "prm_mean": [0.9, 0.1, 0.5, 0.8, 0.2, 0.3], "keep": 4},
    ),
    (
        ref.pre_ppo_select,
        "Pre-PPO, arXiv 2503.22230",
        {
            "scores": [0.9, 0.1, 0.8, 0.3, 0.2, 0.95],
            "domains": ["a", "a", "a", "b", "b", "b"],
            "fraction": 0.34,
        },
    ),
    (
        ref.lim_score,
        "LIMR, arXiv 2502.11886",
        {"trajectory": [0.0, 0.5, 1.0], "average": [0.0, 0.5, 0.5]},
    ),
    (
        ref.dump_domain_weights,
        "DUMP, arXiv 2504.09710",
        {"mean_abs_advantage": [0.5, 0.5], "counts": [9, 99], "tau": 0.5},
    ),
    (
        ref.dads_domain_weights,
        "RuleReasoner, arXiv 2506.08672",
        {"mean_rewards": [0.25, 0.75, 1.5], "target": 1.0, "tau": 0.5},
    ),
    (
        ref.fire_first_token_probs,
        "FIRE, arXiv 2410.21236",
        {"logits": [10, 8, 6, 4, 2], "temperature": 30.0, "top_k": 4},
    ),
    (
        sampled.spo_tree_advantages,
        "SPO-tree, arXiv 2505.23564",
        {"rewards": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0], "branches": [3, 2]},
    ),
    (
        sampled.spo_tree_advantages,
        "SPO-tree, arXiv 2505.23564",
        {"rewards": [1.0, None, 0.5, 0.0, None, None, None, 1.0], "branches": [2, 2, 2]},
    ),
    (
        sampled.rest_exponential_weights,
        "ReST-RL, arXiv 2508.19576",
        {"count": 4, "alpha": 0.95},
    ),
    (
        sampled.rest_uct,
        "ReST-RL, arXiv 2508.19576",
        {"value": 0.5, "visits": 3, "parent_visits": 10, "exploration": 0.2, "eps": 0.1},
    ),
    (
        ref.dpo_losses,
        "DPO, arXiv 2305.18290",
        {
            "chosen": NEW,
            "rejected": OLD,
            "ref_chosen": OLD,
            "ref_rejected": NEW,
            "chosen_mask": MASK,
            "rejected_mask": [[1, 0, 0], [1, 1, 1]],
            "beta": 0.5,
        },
    ),
    (
        ref.prdp_losses,
        "PRDP, arXiv 2402.08714",
        {
            "first": NEW,
            "second": OLD,
            "ref_first": OLD,
            "ref_second": NEW,
            "rewards_first": [1.0, 0.0],
            "rewards_second": [0.0, 0.0],
            "beta": 0.25,
        },
    ),
    *(
        (
            ref.a_lol_losses,
            "A-LoL, arXiv 2305.14718",
            {
                "logprobs": NEW,
                "ref_logprobs": OLD,
                "advantages": advantages,
                "mask": MASK,
                "clip_range": 0.9,
                "by_token": by_token,
            },
        )
        for advantages, by_token in (([0.5, 1.0], False), ([0.5, 1.0], True), ([-1.0, 2.0], False))
    ),
    (
        ref.direct_advantage_po,
        "arXiv 2412.18279",
        {
            "logprobs": [-1.0, -2.0, -0.5, -1.0],
            "ref_logprobs": [-1.5, -1.0, -0.5, -2.0],
            "advantages": [0.25, -0.5, 0.125, 1.0],
            "step_ends": [0, 1, 0, 0],
            "beta": 0.5,
        },
    ),
    *(
        (small.medium_difficulty, "Observe-R1, arXiv 2505.12432", {"correct": correct})
        for correct in ([1, 0, 0, 0], [1, 1, 0, 0], [1, None, 1, 0], [1, 1, 1, 1])
    ),
    *(
        (
            small.concise_bonus,
            "Observe-R1, arXiv 2505.12432",
            {"length": length, "correct": correct, "below": 8, "bonus": 0.5},
        )
        for length, correct in ((7, True), (8, True), (7, False))
    ),
    *(
        (
            small.calibrated_length_penalty,
            "TRAAC, arXiv 2510.01581",
            {"length": length, "pass_rate": rate, "least": 100, "most": 500, "factor": 0.5},
        )
        for length, rate in ((150, 1.0), (150, 0.75), (300, 0.75), (600, 0.0), (90, 1.0))
    ),
    (
        small.self_reference,
        "SRPO (VLA), arXiv 2511.15605",
        {
            "responses": [[1, 2, 3, 4], [1, 2, 5, 5], [7, 8], [9, 2, 3, 4, 1], [1, 2, 3, 4]],
            "rewards": [1.0, 0.0, 0.0, 0.75, -0.5],
            "correct": [True, False, False, True, False],
            "share": 0.5,
            "cuts": 2,
        },
    ),
    (
        small.token_budget,
        "C3PO of Ring-lite, arXiv 2506.14731",
        {
            "lengths": [4, 6, 5, None, 3, 7, 10, 2, None, 8, 12, 1],
            "group_size": 2,
            "prompts": 3,
            "tokens": 16,
        },
    ),
    *small.CASES,
    (
        small.progress_contributions,
        "SPA-RL, arXiv 2505.20732",
        {
            "estimates": [0.5, 0.25, 9.0, -0.25, 0.0, 0.125],
            "step_ends": [0, 1, 0, 1, 0, 1],
            "reward": 1.0,
        },
    ),
    (
        small.progress_estimates,
        "SPA-RL, arXiv 2505.20732",
        {
            "states": [
                [[1.0, 0.0], [0.0, 1.0]],
                [[0.6, 0.8]],
                [[-1.0, 0.0], [0.8, 0.6], [0.0, 1.0]],
            ],
            "rewards": [1.0, 0.0, 0.5],
            "asked": [[1.0, 0.0], [0.0, -1.0]],
            "strength": 0.5,
        },
    ),
    *(
        (
            small.supervision_chance,
            "SASR, arXiv 2505.13026",
            {"norm": norm, "warmup_norm": 2.0, "gamma": gamma, "kl": kl, "brake": 10.0},
        )
        for norm, gamma, kl in ((2.0, 1.0, 0.0), (0.5, 1.0, 0.0), (0.5, 2.0, 0.3), (0.0, 1.0, 0.3))
    ),
    (
        small.recap_weights,
        "RECAP, arXiv 2510.21978",
        {
            "mean_rewards": [[0.2, 0.9, 0.5], [0.4, 0.7, 0.5], [0.5, 0.8, 0.5], [0.75, 0.4, 0.5]],
            "decay": 0.75,
            "tau": 0.25,
        },
    ),
    *(
        (
            small.mixture_scores,
            "MoDoMoDo, arXiv 2505.24871",
            {
                "weights": [[1.0, 0.0], [0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]],
                "scores": [0.5, 0.65, 0.7, 0.6, 0.4],
                "asked": [[0.6, 0.4], [0.1, 0.9]],
                "quadratic": quadratic,
                "strength": strength,
            },
        )
        for quadratic, strength in ((True, 1e-6), (True, 0.1), (False, 1e-6))
    ),
    *(
        (
            ref.kl_coefficients_by_task,
            "Seed1.5-VL, arXiv 2505.07062",
            {"tasks": ["math", "chat", "", "code"], "common": common, "by_task": by_task},
        )
        for common, by_task in ((1e-5, {"math": 0.0, "code": 0.0}), (0.0, {"chat": 1e-5}))
    ),
    *(
        (
            found.self_critique_similarity,
            "Self-Critique, arXiv 2510.09259 (code)",
            {"first": [0.5, 0.0, 2.0, 1.0], "second": second},
        )
        for second in ([0.5, 0.0, 2.0, 1.0], [0.25, 1.5], [1.0, 0.0, 4.0, 2.0, 0.0, 0.5])
    ),
    *(
        (
            found.min_k_score,
            "arXiv 2310.16789",
            {"logprobs": [-0.5, -3.0, -1.0, -0.25, -2.0], "share": share},
        )
        for share in (0.2, 0.4, 0.1)
    ),
    (
        found.min_k_plus_score,
        "arXiv 2404.02936",
        {
            "distributions": [[0.5, 0.25, 0.25], [0.9, 0.05, 0.05], [0.2, 0.2, 0.6]],
            "tokens": [1, 0, 2],
            "share": 0.7,
        },
    ),
    (
        found.cdd_peak,
        "arXiv 2402.15938",
        {
            "greedy": list(range(20)),
            "samples": [
                [*range(20)],
                [*range(19), 7],
                [0, 0, *range(2, 20)],
                [*range(1, 20)],
                [3, 1, 4],
            ],
            "alpha": 0.05,
        },
    ),
]


def own_rows() -> list[dict[str, Any]]:
    """The rows of own.json."""
    return [
        {"function": f.__name__, "spec": spec, "inputs": inputs, "expected": f(**inputs)}
        for f, spec, inputs in CASES
    ]


if __name__ == "__main__":
    sys.stdout.write("[\n" + ",\n".join(json.dumps(row) for row in own_rows()) + "\n]\n")
