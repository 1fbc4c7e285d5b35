"""`assay train-rm`: trains the judges that genrm serves.

pairwise        a language model that names the better of two responses (arXiv 2504.04950)
pointwise       a language model that says whether a response is right
critique        a language model that writes critiques with verdicts, learned from written ones
bradley-terry   one number for a response: TRL's RewardTrainer, the baseline
prm             a probability for each step to be right, read at its end (arXiv 2410.17621)

Folder, resume, checkpoints, display and reporters: see `assay.trainer.records`.
"""
