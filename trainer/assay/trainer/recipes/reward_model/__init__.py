"""`assay train-rm`: trains the judges that genrm serves.

pairwise        a language model that names the better of two responses (arXiv 2504.04950)
bradley-terry   one number for a response: TRL's RewardTrainer, the baseline
prm             a chance for each step to be right, read at its end (arXiv 2410.17621)

config       settings                    data         rows, and the split by prompts
models       what is trained             encoding     rows as examples; the service renders them
objectives   the losses: pure            trainers     transformers' trainers with our losses
evaluation   figures on held-out rows    estimates    their intervals: pure
callbacks    what happens around a step  curves       the picture
run          the whole, start to end

Folder, resume, checkpoints, display and reporters are those of every run: `assay.trainer.records`.
"""
