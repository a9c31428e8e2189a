"""click's `ParamType`, with the type of its values in brackets in every click since 8.1.

click itself takes the brackets from 8.4 on.
"""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import ParamType  # noqa: TID251 - its one home
else:

    class ParamType(click.ParamType):  # noqa: TID251 - as above
        """The base of the types of options; the brackets are for type checkers alone."""

        def __class_getitem__(cls, _values: type) -> type:
            return cls


__all__ = ["ParamType"]
