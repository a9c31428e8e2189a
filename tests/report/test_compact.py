"""Style sheet and script without what means nothing."""

import pytest

from gpureport.report import compact


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("const a = b + c, f = (x) => x ? 1 : -1;", "const a=b+c,f=(x)=>x?1:-1;"),
        ("a = b - -c + +d;", "a=b- -c+ +d;"),
        (
            "for (const each of [1, 2]) if (each in list) return [each];",
            "for(const each of[1,2])if(each in list)return[each];",
        ),
        ("say('a  = b', \"it's , fine\", `${a} , ${'x y'}`);", "say('a  = b',\"it's , fine\",`${a} , ${'x y'}`);"),
        ("found = (/ a , b /.exec(text) / 2 / 3);", "found=(/ a , b /.exec(text)/2/3);"),
        ("if (a) {\n // why\n  b();\n}\nc()\nd()", "if(a){b();}\nc()\nd()"),
    ],
)
def test_a_script_keeps_what_means_something(line: str, kept: str) -> None:
    """Spaces of strings and patterns, between words and between two signs; line breaks that end a statement."""
    assert compact.script(line) == kept


def test_a_style_sheet_keeps_what_means_something() -> None:
    """Spaces between the words of a value and of a selector."""
    assert compact.style("a b {\n  color: red;\n  margin: 0 1px\n}\n") == "a b{color:red;margin:0 1px}"
