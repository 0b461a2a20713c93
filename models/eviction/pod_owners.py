"""Whose pods they are, and whether they have to leave."""

from typing import Final

from evictstream.models.eviction.state import Eviction, PodState
from evictstream.models.kubernetes.traits import NO_TRAITS, Owner
from evictstream.models.messages.vocabulary import EvictionState

_DONE: Final = EvictionState.DONE


def controller_of(pod: PodState) -> Owner | None:
    """Return the owner of a pod, whatever has become of it; None if it has none."""
    traits = pod.traits or NO_TRAITS
    return (pod.address.partition("/")[0], traits.owner_kind, traits.owner_name) if traits.owner_kind else None


def owner_of(pod: PodState) -> Owner | None:
    """Return whose loss it is if a pod leaves; None if it has no owner, or counts no longer."""
    return None if pod.exemptions else controller_of(pod)


def has_to_leave(eviction: Eviction | None) -> bool:
    """Whether a pod with this eviction has to leave: there is one that has not ended."""
    return eviction is not None and eviction.state is not _DONE
