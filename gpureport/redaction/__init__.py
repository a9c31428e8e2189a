"""Secrets, replaced by `***`: on command lines, in params and tags, and in any text before it is written down.

Here live what tells a secret (its name, its form, a person's own settings) and what looks through a text or a command
line for it. Every pattern takes time in proportion to the text. A new form is a row of `FORMS` in `forms`, a new word
one of `names`; `docs/reference/secrets.md` is made from both.
"""

from gpureport.redaction.command_lines import hide_secret_value, hide_secrets
from gpureport.redaction.forms import HIDDEN
from gpureport.redaction.own_secrets import OwnSecrets, use_own_secrets
from gpureport.redaction.texts import redact_pairs, redact_start, redact_text, redact_value

__all__ = [
    "HIDDEN",
    "OwnSecrets",
    "hide_secret_value",
    "hide_secrets",
    "redact_pairs",
    "redact_start",
    "redact_text",
    "redact_value",
    "use_own_secrets",
]
