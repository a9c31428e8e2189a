"""Compares runs step by step.

`run` and `work` prepare a recording for comparison, `figures` lists what is compared, and `steps` groups runs.
`estimate` contains the statistics, `evidence` compares one figure of two steps, `comparable` checks whether steps can
be compared, and `verdict` decides. `chain` compares all steps in order. `changes` finds what else changed.
`quality`, `quality_at_work` and `training` compare training quality, and `gains` measures each step's gain.
`study` and `factors` estimate the effects of settings, and `across` estimates scaling and memory use from
all steps.
"""
