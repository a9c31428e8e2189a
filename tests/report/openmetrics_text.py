"""Reading OpenMetrics text as its specification has it, so that tests notice what a server would refuse."""

import re

Labels = tuple[tuple[str, str], ...]
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf'({_NAME})(?:\{{((?:{_NAME}="(?:[^"\\\n]|\\[\\n"])*",?)*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)')
_LABEL = re.compile(rf'({_NAME})="((?:[^"\\\n]|\\[\\n"])*)"')
_ABOUT = re.compile(rf"# (TYPE|UNIT|HELP) ({_NAME}) (.+)")


def read(text: str) -> dict[str, dict[Labels, float]]:
    """Return the values of each family; fails where the text is not OpenMetrics, or says a thing twice."""
    *lines, end, nothing = text.split("\n")
    assert (end, nothing) == ("# EOF", "")
    families: dict[str, dict[Labels, float]] = {}
    family = ""
    for line in lines:
        about = _ABOUT.fullmatch(line)
        if about:
            what, name, said = about.groups()
            if what == "TYPE":
                assert name not in families
                family, families[name] = name, {}
            assert name == family
            assert what != "TYPE" or said == "gauge"
            assert what != "UNIT" or name.endswith(f"_{said}")
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        assert sample[1] == family
        labels = tuple((name, _plain(value)) for name, value in _LABEL.findall(sample[2] or ""))
        assert len({name for name, _ in labels}) == len(labels)
        assert labels not in families[family]
        families[family][labels] = float(sample[3])
    return families


def _plain(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)
