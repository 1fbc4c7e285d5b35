"""What `--explain` says of each preset."""

from __future__ import annotations

# For each preset: the sampling, the advantage, the objective, the optimiser.
SAID: dict[str, tuple[str, list[str], list[str], str]] = {
    "grpo": (
        "16 prompts x 64 samples = 1,024 responses a step, of at most 1,024 tokens",
        ["A = (R - mean of the 64 rewards of its prompt) / deviation of the same"],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "- 0.04 * pi / pi_old * k3(pi, pi_ref)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 1,024 responses = 1 optimizer step",
    ),
    "dr_grpo": (
        "128 prompts x 8 samples = 1,024 responses a step, of at most 3,000 tokens",
        ["A = R - mean of the 8 rewards of its prompt"],
        [
            "maximise  sum over tokens / (responses * 3,000) of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 8 mini-batches of 128 responses = 8 optimizer steps",
    ),
    "rloo": (
        "256 prompts x 4 samples = 1,024 responses a step, of at most 1,024 tokens",
        ["A = R - mean of the 3 other rewards of its prompt"],
        [
            "maximise  mean over responses of the sum over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "- 0.03 * pi / pi_old * k2(pi, pi_ref)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 2 mini-batches of 512 responses = 2 optimizer steps",
    ),
    "dapo": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 20,480 tokens",
        ["A = (R - mean of the 16 rewards of its prompt) / deviation of the same"],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "max(min(r * A, clip(r, 0.8, 1.28) * A), 10 * A where A < 0)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "ppo": (
        "8,192 prompts x 1 sample = 8,192 responses a step, of at most 20,480 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0.95",
        ],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "vc_ppo": (
        "8,192 prompts x 1 sample = 8,192 responses a step, of at most 20,480 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0.95",
        ],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "vapo": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 20,480 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 1 - 1 / (0.05 * L) for a response of L tokens, at least 0.9",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "] + 0.1 * mean over the tokens of correct responses of log pi",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "t_ppo": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 24,576 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0.95",
            "a response that goes on: r = 0, and V behind its last token is V before it",
            "the policy learns from the tokens that this step drew, each once",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "tmn_grpo": (
        "128 prompts x 16 samples = 2,048 responses a step, of at most 16,384 tokens",
        [
            (
                "A = (R - mean of the 16 rewards of its prompt) / sqrt(mean variance within the "
                "prompts of its task)"
            ),
            (
                "times exp(1 * (1/2 - q)) where R is above its prompt's mean, else its inverse; q "
                "is the share of R above s, with s = 0.8 * mean of the prompt + the rest * mean of "
                "its task"
            ),
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "max(min(r * A, clip(r, 0.8, 1.28) * A), 3 * A where A < 0)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 2,048 responses = 1 optimizer step",
    ),
    "vl_rethinker": (
        "64 prompts x 8 samples = 512 responses a step, of at most 6,144 tokens",
        ["A = R - mean of the 8 rewards of its prompt"],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.35) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 2 mini-batches of 256 responses = 2 optimizer steps",
    ),
    "rest_rl": (
        "16 prompts x 8 samples = 128 responses a step, of at most 1,024 tokens",
        ["A = (R - mean of the 8 rewards of its prompt) / deviation of the same"],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 128 responses = 1 optimizer step",
    ),
    "stable_reinforce": (
        "256 prompts x 1 sample = 256 responses a step, of at most 1,024 tokens",
        [
            "A = R",
            "then whitened over the tokens of the batch: mean 0, deviation 1",
            "0 where it is more than 3 deviations from the mean",
        ],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "- 0.001 * pi / pi_old * k3(pi, pi_ref)",
            "]",
            "r = pi / pi_old of the token, first clamped into [1 / 1000, 1000]",
        ],
        "1 pass over 2 mini-batches of 128 responses = 2 optimizer steps",
    ),
    "spo_tree": (
        "16 prompts x 216 samples = 3,456 responses a step, of at most 1,024 tokens",
        [
            "A_t = V(end of t's segment) - V(its start)",
            "a prompt's responses grow in a tree of 6 x 6 x 6 segments of 30 tokens",
            "V: R at a leaf, the mean of its children elsewhere; faults are in no V",
            "a segment that several responses share is in the loss once",
            "only tokens with a probability below 0.9 are in the loss",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 8 mini-batches of 432 responses = 8 optimizer steps",
    ),
    "spo": (
        "64 prompts x 8 samples = 512 responses a step, of at most 1,024 tokens",
        [
            "A_t = V(end of t's segment) - V(its start)",
            "a segment holds 5 tokens with a probability below 0.9, and begins at the first",
            "V: mean reward of 9 continuations; at the end R",
            "faults are in no V; a segment with an end whose V is not known leaves the loss",
            "only tokens with a probability below 0.9 are in the loss",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 8 mini-batches of 64 responses = 8 optimizer steps",
    ),
    "areal": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 8,192 tokens",
        [
            "A = R - mean of the 16 rewards of its prompt",
            "then whitened over the tokens of the batch: mean 0, deviation 1",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "w * min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
            "w = min(pi_old / sampler's probability, 2): decoupled",
            "pi_old: the weights just before the update",
        ],
        "1 pass over 4 mini-batches of 2,048 responses = 4 optimizer steps",
    ),
    "gspo": (
        "128 prompts x 16 samples = 2,048 responses a step, of at most 8,192 tokens",
        ["A = (R - mean of the 16 rewards of its prompt) / deviation of the same"],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.9997, 1.0004) * A)",
            "]",
            "r = (pi / pi_old of the whole response) ^ (1 / its tokens)",
        ],
        "1 pass over 4 mini-batches of 512 responses = 4 optimizer steps",
    ),
    "cispo": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 20,480 tokens",
        ["A = (R - mean of the 16 rewards of its prompt) / deviation of the same"],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "stop-gradient(clip(r, 0, 1.28)) * A * log pi",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 16 mini-batches of 512 responses = 16 optimizer steps",
    ),
    "pairwise_ppo": (
        "512 prompts x 1 sample = 512 responses a step, of at most 2,048 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0.95",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 128 responses = 4 optimizer steps",
    ),
    "pairwise_group": (
        "64 prompts x 8 samples = 512 responses a step, of at most 2,048 tokens",
        ["A = R - 1/2"],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "- 0.01 * pi / pi_old * k3(pi, pi_ref)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 128 responses = 4 optimizer steps",
    ),
    "pag": (
        "512 prompts x 4 samples = 2,048 responses a step, of at most 2,048 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 1",
            (
                "by turns, each with its own r: neither values nor rewards of later turns reach "
                "earlier ones"
            ),
            (
                "then whitened over the tokens of each role by itself, over the batch: mean 0, "
                "deviation 1"
            ),
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 2,048 responses = 1 optimizer step",
    ),
    "tango": (
        "256 prompts x 5 samples = 1,280 responses a step, of at most 1,024 tokens",
        [
            "A = (R - mean of the 5 rewards of its prompt) / deviation of the same",
            "a token's own: the scaled rewards of the spans that end at or after it",
            "(1 - alpha) A + alpha A_steps, alpha from 0.1 to 0.001, exponentially",
        ],
        [
            "maximise  mean over responses of the mean over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 1,280 responses = 1 optimizer step",
    ),
    "score": (
        "512 prompts x 4 samples = 2,048 responses a step, of at most 2,048 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 1",
            "over turns, each with its own r: the rewards of later turns reach earlier ones",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 512 responses = 4 optimizer steps",
    ),
    "direct_multi_turn": (
        "512 prompts x 4 samples = 2,048 responses a step, of at most 2,048 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 1",
            "over turns, each with its own r: the rewards of later turns reach earlier ones",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 2,048 responses = 1 optimizer step",
    ),
    "simple_tir": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 4,096 tokens",
        [
            "A = (R - mean of the 16 rewards of its prompt) / deviation of the same",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "max(min(r * A, clip(r, 0.8, 1.28) * A), 3 * A where A < 0)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 2,048 responses = 4 optimizer steps",
    ),
    "retool": (
        "512 prompts x 16 samples = 8,192 responses a step, of at most 8,192 tokens",
        [
            "A = (R - mean of the 16 rewards of its prompt) / deviation of the same",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "max(min(r * A, clip(r, 0.8, 1.28) * A), 10 * A where A < 0)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 8 mini-batches of 1,024 responses = 8 optimizer steps",
    ),
    "search_self_play": (
        "256 prompts x 4 samples = 1,024 responses a step, of at most 1,024 tokens",
        [
            "A = (R - mean of the 4 rewards of its prompt) / deviation of the same",
            "R is an agent's own: what its turns earned in the episode",
            "compared with its role in the prompt's other samples",
            "several agents of one role in an episode (solver#1, solver#2): with each other",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.285) * A)",
            "- 0.01 * pi / pi_old * k3(pi, pi_ref)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 2 mini-batches of 512 responses = 2 optimizer steps",
    ),
    "archer": (
        "128 prompts x 1 sample = 128 responses a step, of at most 128 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0",
            "t counts turns, not tokens: all tokens of a turn share one advantage",
            "delta = r + 0.95 * V(before the agent's next turn) - V(before it)",
            "the critic learns V before each turn, on its first token",
        ],
        [
            "maximise  mean over responses of the sum over their tokens of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 128 responses = 1 optimizer step",
    ),
    "supo": (
        "64 prompts x 8 samples = 512 responses a step, of at most 1,024 tokens",
        [
            "A = (R - mean of the 8 rewards of its prompt) / deviation of the same",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.28) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 128 responses = 4 optimizer steps",
    ),
    "dr_mas": (
        "32 prompts x 8 samples = 256 responses a step, of at most 4,096 tokens",
        [
            "A = (R - mean of the 8 rewards of its prompt) / deviation of the same",
            "R is an agent's own: what its turns earned in the episode",
            "compared with its role in the prompt's other samples",
            "several agents of one role in an episode (solver#1, solver#2): with each other",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 256 responses = 1 optimizer step",
    ),
    "pivot_rl": (
        "64 prompts x 8 samples = 512 responses a step, of at most 1,024 tokens",
        [
            "A = (R - mean of the 8 rewards of its prompt) / deviation of the same",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 1 mini-batch of 512 responses = 1 optimizer step",
    ),
    "code_prm": (
        "128 prompts x 4 samples = 512 responses a step, of at most 1,024 tokens",
        [
            "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
            "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
            "gamma = 1, lambda = 0.95",
        ],
        [
            "maximise  mean over the tokens of the mini-batch of [",
            "min(r * A, clip(r, 0.8, 1.2) * A)",
            "]",
            "r = pi / pi_old of the token",
        ],
        "1 pass over 4 mini-batches of 128 responses = 4 optimizer steps",
    ),
}
