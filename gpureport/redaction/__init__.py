"""Replaces secrets with `***` on command lines, in params and tags, and in any text before it is written.

`signs` lists what identifies a secret, and `redaction` searches texts, command lines and columns. A new form is a row
in `FORMS`, a new word goes into a table above it; `docs/reference/secrets.md` is generated from both.
"""

from gpureport.redaction.redaction import (
    hide_secret_value,
    hide_secrets,
    redact_column,
    redact_extra_columns,
    redact_pairs,
    redact_start,
    redact_text,
    redact_value,
)
from gpureport.redaction.signs import HIDDEN, OwnSecrets, get_own_secrets, use_own_secrets

__all__ = ["HIDDEN", "OwnSecrets", "get_own_secrets", "hide_secret_value", "hide_secrets", "redact_column"]
__all__ += ["redact_extra_columns", "redact_pairs", "redact_start", "redact_text", "redact_value", "use_own_secrets"]
