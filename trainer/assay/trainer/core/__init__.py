"""What every method shares: the batch, its loss, the trainer on TRL's loop, the judge, the evaluation."""
