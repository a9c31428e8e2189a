"""Reasons are said once."""

from gpureport.report.wording.reasons import ReasonReferences

_LONG = "One run tells its own scatter from ten minutes on."


def test_a_reason_is_said_in_full_once() -> None:
    """Then by the first figure it was said of; a short one costs less than a reference to it."""
    reasons = ReasonReferences()
    told = [reasons.told(text, of) for text, of in [(_LONG, "idle share"), (_LONG, "power"), ("", "power")]]
    assert told == [_LONG, "as for idle share", ""]
    assert reasons.told(_LONG, "idle share") == "for the same reason"
    assert [reasons.told("not confirmed", name) for name in "ab"] == ["not confirmed"] * 2
