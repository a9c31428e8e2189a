"""What several runs together say: how work scales with GPUs, which batch fits, which kinds of GPU would do.

Imports every other room of the comparison.
A new finding over several runs is a function in `across_findings.py`.
"""
