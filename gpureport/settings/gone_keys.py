"""Keys of the settings that went: each is named in a warning and ignored for a release."""

GONE_KEYS: dict[str, str] = {}
"""By dotted name, such as `rules.idle_gap.old_key`: why nothing reads it, as half a sentence."""
