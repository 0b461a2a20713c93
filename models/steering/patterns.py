"""Lists of patterns, as the selections of policies have them, compared with names and with traits."""

import fnmatch
import re
from collections.abc import Sequence
from typing import Final

from evictstream.models.kubernetes.traits import label_of
from evictstream.models.messages.policy_clauses import PolicySelection
from evictstream.models.steering.holds import Subject

_MOST_REMEMBERED: Final = 10_000
"""Names whose match with a list of patterns is remembered; 1 MB for a list, and six if all were of the longest."""


class Patterns:
    """A list of patterns, and what it has matched."""

    __slots__ = ("_expression", "_known", "_names")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._names = frozenset(patterns)
        globs = [pattern for pattern in patterns if set("*?[") & set(pattern)]
        self._expression = re.compile("|".join(map(fnmatch.translate, globs))) if globs else None
        self._known: dict[str, bool] = {}

    def match(self, name: str) -> bool:
        """Whether one of them matches a name; an empty list matches all."""
        if not self._names or name in self._names:
            return True
        if self._expression is None:
            return False
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            known = self._known[name] = self._expression.match(name) is not None
        return known


class TraitPatterns:
    """What a selection says of zones, labels, owners and priorities.

    What a node or a pod has not, no pattern matches. What is not known matches all, or none, as its user wants it.
    """

    __slots__ = ("_below", "_is_unknown_in", "_labels", "_owners", "_zones")

    def __init__(self, selection: PolicySelection, *, is_unknown_in: bool) -> None:
        """Take a selection, and whether what is not known is in it."""
        self._is_unknown_in = is_unknown_in
        self._zones = Patterns(selection.zones) if selection.zones else None
        self._owners = owner_patterns(selection) if selection.owners else None
        values: dict[str, list[str]] = {}
        for one in selection.node_labels:
            key, _, value = one.partition("=")
            values.setdefault(key, []).append(value)
        self._labels = {key: Patterns(patterns) for key, patterns in values.items()}
        self._below = None if selection.priority is None else selection.priority.below

    def match(self, subject: Subject) -> bool:
        """Whether an eviction matches all that is said."""
        return (
            (self._zones is None or self._match_name(self._zones, subject.zone))
            and (not self._labels or self._match_labels(subject))
            and (self._owners is None or self._match_owner(self._owners, subject))
            and (self._below is None or self._match_priority(self._below, subject))
        )

    def _match_name(self, patterns: Patterns, name: str | None) -> bool:
        return self._is_unknown_in if name is None else name != "" and patterns.match(name)

    def _match_owner(self, patterns: Patterns, subject: Subject) -> bool:
        return self._match_name(patterns, None if subject.traits is None else subject.traits.owner)

    def _match_labels(self, subject: Subject) -> bool:
        if subject.node_labels is None:
            return self._is_unknown_in
        for key, patterns in self._labels.items():
            value = label_of(subject.node_labels, key)
            if value is not None and patterns.match(value):
                return True
        return False

    def _match_priority(self, below: int, subject: Subject) -> bool:
        return self._is_unknown_in if subject.traits is None else subject.traits.priority < below


def owner_patterns(selection: PolicySelection) -> Patterns:
    """Return what a selection says of owners, as `Kind/name`."""
    return Patterns([one if "/" in one else f"{one}/*" for one in selection.owners])


def trait_patterns(selection: PolicySelection, *, is_unknown_in: bool) -> TraitPatterns | None:
    """Return what a selection says of traits; None if it says nothing, as most."""
    if not (selection.zones or selection.owners or selection.node_labels or selection.priority):
        return None
    return TraitPatterns(selection, is_unknown_in=is_unknown_in)
