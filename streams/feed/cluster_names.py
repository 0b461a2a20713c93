"""Names of clusters as people give them: checked in one place, for every command and every file that names one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from evictstream.models.messages.cluster_names import cluster_name_problem, usable_name
from evictstream.streams.errors import WrongUseError

_MOST_SHOWN: Final = 200
"""Characters of a name in a message: an ARN is shorter."""


def check_cluster_name(name: str, *, context: str | None = None) -> str:
    """Return a cluster's name that keys can carry.

    Args:
        name: as it was given.
        context: of the kubeconfig, if one was given with it.

    Raises:
        WrongUseError: it cannot be one; the message has a name that can, and how to give it beside the context.
    """
    if (problem := cluster_name_problem(name)) is None:
        return name
    usable = usable_name(name)
    next_step = f"call it for example {usable}"
    if "/" in name:  # as the names of contexts have
        option = shlex.quote(f"{usable}={context or name}")
        next_step += f"; feed and execute find its context by `--cluster {option}`"
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."
    raise WrongUseError(f"{shown!r} cannot be the name of a cluster: {problem}", next_step=next_step)


def contexts_by_cluster(texts: Iterable[str]) -> dict[str, str | None]:
    """Read `NAME` or `NAME=CONTEXT`; None stands for the kubeconfig's current context.

    Raises:
        WrongUseError: a name cannot be one or is given twice, or an equals sign has no context behind it.
    """
    contexts: dict[str, str | None] = {}
    for text in texts:
        name, equals, context = text.partition("=")
        check_cluster_name(name, context=context)
        if name in contexts:
            raise WrongUseError(f"--cluster {name} is given twice")
        if equals and not context:
            raise WrongUseError(f"--cluster {text} has no context after =", next_step="omit = for the current context")
        contexts[name] = context or None
    return contexts
