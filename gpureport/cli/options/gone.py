"""Options that went, and what to use instead: each is refused with one line for a release."""

GONE: dict[str, str] = {
    "--templates": "set logo, accent, font and footer in [report] of gpureport.toml",
}
"""By option, as it is typed: what to use instead, as half a sentence: `{"--notify": "use --format line"}`."""
