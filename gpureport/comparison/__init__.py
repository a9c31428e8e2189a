"""Runs set side by side, step by step.

`run` and `work` take a recording as a comparison needs it, `figures` is the table of what is compared, and `steps`
groups runs. `estimate` holds the statistics, `evidence` what two steps hold on a figure, `comparable` whether they may
be compared, `verdict` what may be said of it. `chain` compares all steps in order. `changes` says what else changed,
`quality`, `quality_at_work` and `training` how well steps trained, `gains` what each was worth, `study` and `factors`
what settings did, and `across` what all steps show of scaling and memory.
"""
