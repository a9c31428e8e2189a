"""Options that went, and what to use instead, refused with a line for a release."""

GONE: dict[str, str] = {
    "--explain": "use gpureport -v ingest, which prints what each column and line became",
    "--calibrate": "repeat each step three times, or set a baseline of three runs and use gpureport check",
    "--notify": "use --format line",
    "--templates": "set logo, accent, font and footer in [report] of gpureport.toml",
}
"""By option, as it is typed: what to use instead, as half a sentence: `{"--notify": "use --format line"}`."""
