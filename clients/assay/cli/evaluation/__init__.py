"""Measures a judge on rows with a known answer. Pure.

rows         the questions of a row, and its line of output
sheet        the questions of a file, and whether a service can answer them
tallies      counts over the lines, by subset
measures     accuracy, calibration, bias of place and of length, each with an interval
steps, best  counts over steps, and over several responses
benchmarks   the scores of RewardBench 2, JudgeBench, ProcessBench and PRMBench
agreement    between judges
"""
