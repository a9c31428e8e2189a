"""What is shown instead of names stays as distinct as they are."""

from gpureport.report.runs.pseudonyms import DistinctTexts, HostNumbers


def test_a_machine_has_one_number_with_and_without_its_domain() -> None:
    """Whichever name comes first; case does not matter."""
    hosts = HostNumbers()
    names = ("clara01", "CLARA01.lab.example.org", "dora9.lab.example.org", "dora9", "10.1.2.3", "10.1.2.4")
    assert [hosts.hide(name) for name in names] == ["host-1", "host-1", "host-2", "host-2", "host-3", "host-4"]


def test_machines_of_two_domains_are_two() -> None:
    """Without its domain, a name is the first of them."""
    hosts = HostNumbers()
    assert [hosts.hide(name) for name in ("gpu.a.org", "gpu.b.org", "gpu")] == ["host-1", "host-2", "host-1"]


def test_texts_that_are_hidden_alike_get_numbers() -> None:
    """One text is shown alike wherever it stands, a text without names as it is."""
    texts = DistinctTexts()
    pairs = [("a", "x"), ("b", "x"), ("a", "x"), ("c", "x 2"), ("d", "d"), ("e", "x")]
    shown = [texts.tell_apart("step", text, hidden) for text, hidden in pairs]
    assert shown == ["x", "x 2", "x", "x 2 2", "d", "x 3"]
    assert texts.tell_apart("param", "b", "x") == "x"


def test_a_text_that_stays_is_taken() -> None:
    """No other is shown like it, with its number or without, whichever is met first."""
    texts = DistinctTexts()
    for plain in ("x", "x 2"):
        texts.keep("step", plain)
    assert [texts.tell_apart("step", "a", "x"), texts.tell_apart("step", "x", "x")] == ["x 3", "x"]
