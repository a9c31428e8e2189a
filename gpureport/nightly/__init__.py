"""The history of nights, its changes, and the pages made from it, for the commands `nightly` and `baseline`.

A night is a record (`records`, with the figures in `figures`), stored as a file (`history`).
`shifts` detects where the level of a figure changed, `trends` builds courses and events from that,
and `latest` words them for the latest night. `pages` prepares the pages that `site` writes.
`baselines` stores named runs to compare with.
"""
