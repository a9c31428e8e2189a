"""Runs templates of a theme, which somebody else may have written: no Python behind a value, and no endless loop.

What is not held: the memory that text takes which a template makes longer and longer.
"""

from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any

from jinja2 import TemplateRuntimeError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 1_000_000
"""Turns of loops and calls of one page; the page of 512 GPUs takes 2,400 (pragmatic)."""
_MOST_DIGITS = 1_000_000
"""Characters, entries or bits that one multiplication or power may make."""
_COUNTED = "counted"
_CONTENT = "gpureport"
_OPEN = {"builtins", "datetime", "enum", _CONTENT, "jinja2", "markupsafe"}
"""Modules whose values show their attributes: those of others, such as tables of Arrow, write files."""


class _CountingGenerator(CodeGenerator):
    """Compiles loops so that each turn is counted."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:  # noqa: N802 - Jinja's name
        """Put the filter that counts around all that is looped over."""
        for loop in node.find_all(nodes.For):
            counted = nodes.Filter(loop.iter, _COUNTED, [], [], None, None)
            loop.iter = counted.set_lineno(loop.lineno).set_environment(self.environment)
        super().visit_Template(node, frame)


class ThemeEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox for one page of a theme.

    Templates read the content and change nothing of it. What they may not do is an error of the template.
    """

    code_generator_class = _CountingGenerator
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of Jinja
        """Take the options of an environment."""
        super().__init__(**options)
        self.filters[_COUNTED] = self._count_turns
        self._steps = 0

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ANN401 - any value
        """Return whether a template may see an attribute: none of Python's inside, and none of a library's values.

        The content shows what it holds, and no method, which could do more than say something.
        """
        module = type(obj).__module__.partition(".")[0]
        is_open = module in _OPEN and not (module == _CONTENT and isinstance(value, MethodType))
        return is_open and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, /, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any function
        """Call what a template calls, and count it."""
        self._count()
        if isinstance(obj, LoopContext):
            # a loop that calls itself brings the next things to loop over
            args = tuple(self._count_turns(each) for each in args)
        return super().call(context, obj, *args, **options)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - any values
        """Multiply, or raise to a power, unless the result would fill the memory."""
        if _estimate_size(operator, left, right) > _MOST_DIGITS:
            raise TemplateRuntimeError(f"the result of {operator} is larger than {_MOST_DIGITS:,} digits or entries")
        return super().call_binop(context, operator, left, right)

    def _count_turns(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._count()
            yield value

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TemplateRuntimeError(f"it takes more than {MOST_STEPS:,} steps; look for a loop without an end")


def _estimate_size(operator: str, left: Any, right: Any) -> int:  # noqa: ANN401 - any values
    """Return how many characters, entries or bits a product or power has at most; 0 where it is no whole number."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
    for one, times in ((left, right), (right, left)):
        if isinstance(times, int) and hasattr(one, "__len__"):
            return len(one) * abs(times)
    return 0
