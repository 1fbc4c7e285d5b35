"""What every method shares: batch, loss, the trainer on TRL's loop, judge, evaluation."""
