"""Brakes and policies of a replay: those that stand throughout, and those that a recording holds, from their times on.

A record that cannot be read changes nothing here. In the service it closes a gate, so that nothing is evicted until it
is mended; a replay goes on, and says so.
"""

from __future__ import annotations

from evictstream.kit.recordings.record import STEERING_ROLES, RecordedRecord
from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.policies import NO_POLICIES, Policies


class RecordedSteering:
    """The view at one instant.

    Attributes:
        brakes: all that were read so far.
        policies: those that stand throughout, and all others that were read so far.
    """

    __slots__ = ("_given", "_is_followed", "brakes", "policies")

    def __init__(self, policies: Policies = NO_POLICIES, *, is_followed: bool = True) -> None:
        """Begin.

        Args:
            policies: stand from the beginning on; a recorded one of the same name is passed over.
            is_followed: whether recorded brakes and policies count.
        """
        self.brakes: Brakes = NO_BRAKES
        self.policies = policies
        self._given = frozenset(policies.standing)
        self._is_followed = is_followed

    def copy(self) -> RecordedSteering:
        """Return one that goes on from here by itself."""
        other = RecordedSteering(is_followed=self._is_followed)
        other.brakes, other.policies, other._given = self.brakes, self.policies, self._given
        return other

    def given(self, policies: Policies) -> RecordedSteering:
        """Return it as it is, with other policies in place of those of the same names; nothing changes any more."""
        unreadable = {name: why for name, why in self.policies.unreadable.items() if name not in policies.standing}
        other = RecordedSteering(
            Policies({**self.policies.standing, **policies.standing}, unreadable), is_followed=False
        )
        other.brakes = self.brakes
        return other

    @property
    def is_any(self) -> bool:
        """Whether anything stands or has stood."""
        return bool(self.brakes.standing or self.policies.standing)

    def wants(self, record: RecordedRecord) -> bool:
        """Tell whether a record changes what stands."""
        is_given = record.topic == "policies" and record.cluster in self._given
        return self._is_followed and record.topic in STEERING_ROLES and not is_given

    def take(self, record: RecordedRecord) -> None:
        """Take a record that `wants` wants."""
        if record.topic == "brakes":
            self.brakes = self.brakes.with_record(record.key, record.value, record.timestamp)
        else:
            self.policies = self.policies.with_record(record.key, record.value, record.timestamp)

    def objections(self) -> list[str]:
        """Say which records cannot be read."""
        return [
            f"{what} {key!r}: {detail}"
            for what, view in (("brake", self.brakes), ("policy", self.policies))
            for key, detail in view.unreadable.items()
        ]
