"""The history of nights, its changes and its pages, for the commands `nightly` and `baseline`.

Each night is a record (`records`, with figures from `figures`) in a file (`history`). `shifts` detects
changes in the level of a figure, `trends` combines them into events, and `latest` describes those
of the latest night. `pages` prepares the pages that `site` writes. `baselines` stores named runs for
comparisons.
"""
