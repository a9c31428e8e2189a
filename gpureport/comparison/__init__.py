"""Compares runs step by step.

`run` and `work` prepare a recording for comparison, `figures` lists the figures to compare, and `steps` groups runs.
`estimate` has the statistics, `evidence` measures one figure of two steps, `comparable` checks whether the two may be
compared, and `verdict` draws the conclusion. `chain` compares all steps in order. `changes` finds what else changed.
`quality`, `quality_at_work` and `training` compare the training quality of steps, and `gains` measures what each step
gained. `study` and `factors` estimate the effects of settings, and `across` estimates scaling and memory from all
steps.
"""
