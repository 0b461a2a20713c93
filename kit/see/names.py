"""Names that people give, compared with those that a service knows."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable
from typing import Final

from evictstream.kit.replay.asked_pod import LEAST_LIKENESS, MOST_COMPARED
from evictstream.streams.errors import FoundProblemError

_MOST_MEANT: Final = 3
_MOST_LISTED: Final = 10
"""Names that a message lists; a service may have thousands."""


def check_known(what: str, asked: str | None, known: Iterable[str]) -> None:
    """Pass what is known, and None.

    Raises:
        FoundProblemError: the name is not known; the message has names that are like it, or some that are known.
    """
    if asked is None:
        return
    names = dict.fromkeys(itertools.islice(known, MOST_COMPARED))
    if asked not in names:
        raise FoundProblemError(f"the service has no {what} {asked}", next_step=_next_step(what, asked, names))


def _next_step(what: str, asked: str, names: Collection[str]) -> str:
    if meant := difflib.get_close_matches(asked, names, n=_MOST_MEANT, cutoff=LEAST_LIKENESS):
        return f"did you mean {' or '.join(meant)}?"
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
    return f"known {what}s: {', '.join(listed[:_MOST_LISTED]) or 'none'}{more}"
