"""The history of nights, the changes in it, and the pages about it, for the commands `nightly` and `baseline`.

Each night is a record (`records`, with figures from `figures`) in a file (`history`). `shifts` detects
changes in the level of a figure, `trends` combines them into events, and `latest` describes those in
the latest night. `pages` prepares the pages that `site` writes. `baselines` stores named runs for
comparisons.
"""
