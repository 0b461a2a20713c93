"""Label selectors as texts, in the grammar of `kubectl -l`.

    SELECTOR    = REQUIREMENT { "," REQUIREMENT }
    REQUIREMENT = key | "!" key | key ("=" | "==" | "!=") value | key ("in" | "notin") "(" value { "," value } ")"

Source: `staging/src/k8s.io/apimachinery/pkg/labels/selector.go`. Its `>` and `<` are refused here, as kubectl's help
does not name them.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from evictstream.kit.rules.validation.labels import label_key_errors, label_value_errors

_WORD: Final = r"[^\s=!(),<>]"
_REQUIREMENT: Final = re.compile(
    rf"""\s*(?: !\s*(?P<absent>{_WORD}+)
         | (?P<key>{_WORD}+)
           (?: \s+(?P<set>in|notin)\s*\((?P<values>[^()=!<>]*)\)
             | \s*(?P<sign>==|=|!=)\s*(?P<value>{_WORD}*) )?
       )\s*(?P<end>,|\Z)""",
    re.VERBOSE,
)


class SelectorError(ValueError):
    """A text is no label selector; the message says why."""


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One condition.

    Attributes:
        key: of the label.
        values: the label must have one of them; None if any value matches.
        is_negated: the label must not have such a value; an object without the label matches.
    """

    key: str
    values: frozenset[str] | None = None
    is_negated: bool = False


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Read a selector; an empty text has no conditions and selects everything.

    Raises:
        SelectorError: the text is no selector, or a key or value in it is illegal for a label.
    """
    requirements: list[Requirement] = []
    position = 0
    is_open = bool(text.strip())
    while is_open:
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise SelectorError(f"{text!r} is no label selector; it cannot be read from {text[position:].strip()!r} on")
        requirements.append(_requirement(match))
        position = match.end()
        is_open = match["end"] == ","
    for requirement in requirements:
        problems = label_key_errors(requirement.key)
        for value in sorted(requirement.values or ()):
            problems += label_value_errors(value)
        if problems:
            raise SelectorError(f"{text!r} is no label selector: {problems[0]}")
    return tuple(requirements)


def selects(selector: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    """Return whether labels meet all conditions."""
    return all(
        (each.key in labels and (each.values is None or labels[each.key] in each.values)) != each.is_negated
        for each in selector
    )


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent"], None, is_negated=True)
    if match["set"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], values, is_negated=match["set"] == "notin")
    if match["sign"]:
        return Requirement(match["key"], frozenset({match["value"]}), is_negated=match["sign"] == "!=")
    return Requirement(match["key"])
