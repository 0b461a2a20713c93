"""What each setting is for: the docstring below its field, read from the source when somebody asks.

pydantic can do that when a class is made, which would be an eighth of what the start of every service costs.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap

from evictstream.streams.settings.group import SettingsGroup


def meanings(group: type[SettingsGroup]) -> dict[str, str]:
    """Return in one line for each field what it is for, by the field's name."""
    found: dict[str, str] = {}
    for each in reversed(group.__mro__):
        if issubclass(each, SettingsGroup):
            (made,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            assert isinstance(made, ast.ClassDef)  # noqa: S101 - it is the source of a class
            for field, text in itertools.pairwise(made.body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(meaning))):
                        found[name] = " ".join(meaning.split())
    return found
