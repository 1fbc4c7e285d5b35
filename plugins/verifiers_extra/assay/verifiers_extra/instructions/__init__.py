"""Instruction following: the instructions of IFEval and IFBench."""
