"""The history of nights, what changed over them, and the pages made from it; used by `nightly` and `baseline`.

A night is a record (`records`, with the figures of `figures`), kept as a file (`history`). `shifts` are found where the
level of a figure changed, `trends` make courses and events of them, `latest` says what they mean tonight, in words.
`pages` are what the `site` shows. `baselines` holds named runs to compare with.
"""
