"""Columns of text: what stands in for secrets, and that what differs stays so."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from gpureport.redaction import HIDDEN
from gpureport.redaction.own_secrets import OwnSecrets, use_own_secrets
from gpureport.redaction.tables import redact_column, redact_extra_columns


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    """Leave no secrets in use."""
    yield
    use_own_secrets(OwnSecrets())


def test_names_that_differ_stay_so() -> None:
    """Data of two metrics never become those of one; what is shown is shown again as it is."""
    names = ["b:s3cr3t@node", "loss", "a:s3cr3t@node", "b:s3cr3t@node", f"{HIDDEN}@node (2)", None]
    table = pa.table({"name": pa.array(names, pa.string()).dictionary_encode(), "value": range(len(names))})
    shown = redact_column(table, "name")
    second, first = f"{HIDDEN}@node (3)", f"{HIDDEN}@node"
    assert shown.column("name").to_pylist() == [second, "loss", first, second, f"{HIDDEN}@node (2)", None]
    assert shown.schema.equals(table.schema)
    assert redact_column(shown, "name") is shown


def test_extra_columns_have_the_names_of_the_log() -> None:
    """`extra_` before them is ours."""
    use_own_secrets(OwnSecrets(names=("badge",)))
    table = pa.table({"extra_badge": ["4711", None], "extra_lane": ["7", "8"], "badge": ["4711", "1"]})
    shown = redact_extra_columns(table).to_pydict()
    assert shown == {"extra_badge": [HIDDEN, None], "extra_lane": ["7", "8"], "badge": ["4711", "1"]}
