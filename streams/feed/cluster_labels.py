"""Labels of a cluster as people give them to its feed: in the form of Kubernetes' labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from evictstream.models.messages.fleet import LONGEST_LABEL_VALUE, MOST_CLUSTER_LABELS
from evictstream.streams.errors import WrongUseError

_LONGEST_PREFIX: Final = 253
_LONGEST_NAME: Final = 63
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def labels_of(texts: Iterable[str]) -> dict[str, str]:
    """Read `KEY=VALUE`, each key once.

    Raises:
        WrongUseError: a text is no label, a key is given twice, or there are too many.
    """
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise WrongUseError(f"--label {text} has no =", next_step="write --label KEY=VALUE")
        if not _is_key(key):
            problem = f"{key!r} cannot be the key of a label"
            raise WrongUseError(
                problem, next_step="use letters, digits, -, _ and dots, as in topology.example.com/site"
            )
        if value and not (len(value) <= LONGEST_LABEL_VALUE and _WORD.fullmatch(value)):
            problem = f"{value!r} cannot be the value of a label"
            raise WrongUseError(problem, next_step="use up to 63 letters, digits, -, _ and dots")
        if key in labels:
            raise WrongUseError(f"--label {key} is given twice")
        labels[key] = value
    if len(labels) > MOST_CLUSTER_LABELS:
        raise WrongUseError(f"{len(labels)} labels are given; {MOST_CLUSTER_LABELS} are the most")
    return labels


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_PREFIX and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _LONGEST_NAME and _WORD.fullmatch(name) is not None
