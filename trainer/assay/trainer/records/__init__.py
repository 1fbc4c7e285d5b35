"""What a run writes and shows: its folder, metrics, samples, curves, report."""
