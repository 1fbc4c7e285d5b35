"""`assay train-rm`: trains the judges that genrm serves.

pairwise        a language model that names the better of two responses (arXiv 2504.04950)
bradley-terry   one number for a response: TRL's RewardTrainer, the baseline
prm             a probability for each step to be right, read at its end (arXiv 2410.17621)

Folder, resume, checkpoints, display and reporters: see `assay.trainer.records`.
"""
