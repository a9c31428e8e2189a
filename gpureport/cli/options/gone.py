"""Options that went, and what to use instead: each is refused with one line for a release."""

GONE: dict[str, str] = {
    "--notify": "use --format line",
}
"""By option, as it is typed: what to use instead, as half a sentence: `{"--notify": "use --format line"}`."""
