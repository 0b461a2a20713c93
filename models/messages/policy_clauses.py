"""What a policy is about and how it holds evictions back: its selections, and each of its clauses.

A field that a reader does not know is refused, as in the whole policy (`policy.py`).
"""

import enum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

MOST_PATTERNS: Final = 1_000
"""Patterns in each list of a selection. For more, write a shorter pattern, or several policies."""

LONGEST_PATTERN: Final = 253
"""Characters of a pattern: no name of a cluster, node, namespace or taint is longer, but for a taint's prefix."""

LONGEST_CLAUSE_SECONDS: Final = 7 * 86_400
"""A week. What shall wait longer is not meant to leave: a toleration says so."""

LONGEST_POLICY_SPREAD_SECONDS: Final = 86_400
"""A day. A record with more would hold what it lets go for as long as somebody mistyped."""

LONGEST_LABEL: Final = 512
"""Characters of a label's key and the pattern of its value; Kubernetes' keys have at most 317, and values 63."""

LABEL_PATTERN: Final = r"^[^=*?\[\]]+=[^=]*$"
"""A key, which is no pattern, and the pattern of its value."""

LEAST_ABOVE_ALL_PRIORITIES: Final = 2**31
"""Kubernetes' priorities are numbers of 32 bits."""

HIGHEST_RATE: Final = 10_000
"""Evictions in the time of a rate, and in a burst: more than a partition issues in that time is no limit."""

LONGEST_RATE_SECONDS: Final = 86_400
"""The longest time of a rate: one eviction a day. What shall be slower is not meant to leave."""

LONGEST_RATE_LABEL: Final = 317
"""Characters of a label's key: prefix, slash and name, as Kubernetes takes them."""

MOST_COUNTED: Final = 100_000
"""Nodes that a clause may count to; more than any cluster has."""

MOST_WINDOWS: Final = 20
"""Windows of a clause. A week with more has fewer reasons than windows: write another policy."""

MOST_GUARDED: Final = 1_000_000
"""Nodes or pods that a guard allows at most; more than any cluster has is no guard."""

LONGEST_OF_PODS_SECONDS: Final = 3_600
"""The longest time of a guard that counts pods: so long workers remember those that have left, by default."""

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

ClauseSeconds = Annotated[int, Meta(ge=1, le=LONGEST_CLAUSE_SECONDS)]
"""How long a clause may wait or look back."""

_Pattern = Annotated[str, Meta(min_length=1, max_length=LONGEST_PATTERN)]
_Patterns = Annotated[tuple[_Pattern, ...], Meta(max_length=MOST_PATTERNS)]
_Label = Annotated[str, Meta(pattern=LABEL_PATTERN, max_length=LONGEST_LABEL)]
_Most = Annotated[int, Meta(ge=1, le=MOST_COUNTED)]
_Share = Annotated[int, Meta(ge=1, le=100)]


class PriorityRange(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """Some priorities of pods; 0 for a pod that has none, as in Kubernetes."""

    below: Annotated[
        int, Meta(gt=-LEAST_ABOVE_ALL_PRIORITIES, le=LEAST_ABOVE_ALL_PRIORITIES, description="All that are lower.")
    ]


class PolicySelection(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """Evictions that match each of its fields, a list by one of its patterns. An empty list matches all.

    In a pattern `*` stands for any text, `?` for one character, and `[ab]` for one of these characters.
    """

    clusters: Annotated[_Patterns, Meta(description="Names of clusters.")] = ()
    nodes: Annotated[_Patterns, Meta(description="Names of nodes.")] = ()
    taints: Annotated[_Patterns, Meta(description="Keys of the taints for which pods would leave.")] = ()
    namespaces: Annotated[_Patterns, Meta(description="Namespaces of pods.")] = ()
    zones: Annotated[_Patterns, Meta(description="Values of the nodes' label topology.kubernetes.io/zone.")] = ()
    owners: Annotated[_Patterns, Meta(description="Controllers of pods: `Kind`, or `Kind/name`.")] = ()
    node_labels: Annotated[
        tuple[_Label, ...], Meta(max_length=MOST_PATTERNS, description="Labels of nodes: a key, `=` and a pattern.")
    ] = ()
    priority: Annotated[PriorityRange | None, Meta(description="Priorities of pods; absent for all.")] = None


class LimitScope(enum.StrEnum):
    """What has a rate of its own: one bucket for each of them, in each cluster."""

    CLUSTER = "cluster"
    ZONE = "zone"
    LABEL = "label"
    NAMESPACE = "namespace"
    GROUP = "group"
    OWNER = "owner"
    NODE = "node"


class PolicyLimit(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """How fast evictions may be issued: between two instants no more than rate * span + burst."""

    evictions: Annotated[int, Meta(ge=1, le=HIGHEST_RATE, description="So many may be issued in the time below.")]
    in_seconds: Annotated[int, Meta(ge=1, le=LONGEST_RATE_SECONDS, description="In so many seconds.")] = 1
    burst: Annotated[int, Meta(ge=1, le=HIGHEST_RATE, description="So many may be issued at once.")] = 1
    per: Annotated[LimitScope, Meta(description="What has this rate.")] = LimitScope.CLUSTER
    label: Annotated[
        str, Meta(max_length=LONGEST_RATE_LABEL, description="Of `per` `label`: the key of a label of nodes.")
    ] = ""


class InFlightUnit(enum.StrEnum):
    """What takes a slot of those that may be in flight."""

    PODS = "pods"
    NODES = "nodes"
    GROUPS = "groups"


class PolicyInFlight(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """How many may be in flight at once: from their `Evict` until the feed tells that they are gone."""

    count: Annotated[_Most | None, Meta(description="No more than so many; absent for a share alone.")] = None
    share_percent: Annotated[
        _Share | None, Meta(description="Of nodes: no more than this share of them, rounded down, and at least one.")
    ] = None
    of: Annotated[InFlightUnit, Meta(description="What is counted: a node or group as one, with all its pods.")] = (
        InFlightUnit.PODS
    )
    per: Annotated[LimitScope, Meta(description="What has this limit.")] = LimitScope.CLUSTER
    label: Annotated[
        str, Meta(max_length=LONGEST_RATE_LABEL, description="Of `per` `label`: the key of a label of nodes.")
    ] = ""
    counts_seconds: Annotated[
        ClauseSeconds, Meta(description="So long after its first `Evict` a pod counts that does not go.")
    ] = 1_800

    def __post_init__(self) -> None:
        """Refuse one without a number, and a share of what is not counted."""
        if self.count is None and self.share_percent is None:
            message = "a limit of what is in flight needs a count or a share"
            raise ValueError(message)
        if self.share_percent is not None and (
            self.of is not InFlightUnit.NODES or self.per not in {LimitScope.CLUSTER, LimitScope.ZONE}
        ):
            message = "a share is of nodes, per cluster or zone"
            raise ValueError(message)


_Time = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class PolicyWindow(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """A time of some days of the week, in the local time of a place."""

    begins: Annotated[_Time, Meta(description="Local time, as in `22:00`.")]
    ends: Annotated[_Time, Meta(description="Local time; of the next day, if it is not later than `begins`.")]
    zone: Annotated[
        str, Meta(min_length=1, max_length=LONGEST_PATTERN, description="A zone of the IANA time zone database.")
    ]
    days: Annotated[
        tuple[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], ...],
        Meta(max_length=len(DAYS), description="Days on which it begins; absent for each day."),
    ] = ()


_ONE_OF_TWO: Final = "a hold has either `outsideOf` or `while`, and that either `zone` or `zones`"


class ZoneOutage(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """A zone of which many nodes are unhealthy."""

    unhealthy_percent: Annotated[_Share, Meta(description="Of its nodes; what share is unhealthy is rounded down.")]
    at_least: Annotated[_Most, Meta(description="And no fewer of its nodes.")] = 3


class HoldCondition(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What is so while evictions wait: one of the two."""

    zone: Annotated[ZoneOutage | None, Meta(description="The zone of the pod's node is like this.")] = None
    zones: Annotated[Literal["allFull"] | None, Meta(description="No node of the cluster is healthy.")] = None

    def __post_init__(self) -> None:
        """Refuse none and both."""
        if (self.zone is None) == (self.zones is None):
            raise ValueError(_ONE_OF_TWO)


class PolicyHold(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """When evictions wait, and how they go then."""

    outside_of: Annotated[
        tuple[PolicyWindow, ...],
        Meta(min_length=1, max_length=MOST_WINDOWS, description="They are issued in one of these; absent for `while`."),
    ] = ()
    condition: Annotated[
        HoldCondition | None, Meta(description="They wait as long as this is so; absent for windows.")
    ] = msgspec.field(name="while", default=None)
    spread_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_POLICY_SPREAD_SECONDS,
            description="Over how long what has waited is spread, but over no more than half of a window.",
        ),
    ] = 60
    at_most_seconds: Annotated[
        ClauseSeconds | None, Meta(description="An eviction that is due waits no longer; absent for no such end.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse none and both of windows and condition."""
        if bool(self.outside_of) == (self.condition is not None):
            raise ValueError(_ONE_OF_TWO)


_Guarded = Annotated[int, Meta(ge=0, le=MOST_GUARDED)]
_Percent = Annotated[int, Meta(ge=0, le=100)]


class GuardMeasure(enum.StrEnum):
    """What a guard counts."""

    NODES = "nodes"  # those that got the taint
    PODS = "pods"  # on these nodes, those that have to leave for the taint, or have left for it
    OWNERS_LOSING_ALL = "ownersLosingAll"  # of pods, those of which all leave or have left, the last such nodes


class GuardScope(enum.StrEnum):
    """Of what a guard counts each by itself, in each cluster."""

    TAINT_KEY = "taintKey"
    ZONE = "zone"  # of its nodes, each taint key by itself
    NODE = "node"  # of its pods, each taint key by itself


class PolicyGuard(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """How much may happen before evictions wait for a person. Of count and share, at least one, the lower binds."""

    count: Annotated[_Guarded | None, Meta(description="So many are allowed; absent for no such number.")] = None
    share_percent: Annotated[
        _Percent | None, Meta(description="So many of a hundred are allowed, rounded down; absent for no such share.")
    ] = None
    of: Annotated[
        GuardMeasure,
        Meta(
            description="What is counted: nodes that carry the taint, their pods that leave for it, or owners that lose"
            " all of their pods, the last ones there."
        ),
    ] = GuardMeasure.NODES
    within_seconds: Annotated[ClauseSeconds, Meta(description="Those count whose taints came within so long a time.")]
    by: Annotated[GuardScope, Meta(description="Of what each is counted by itself.")] = GuardScope.TAINT_KEY
    release_after_seconds: Annotated[
        ClauseSeconds | None,
        Meta(description="An incident lets evictions go after so long; absent where a person has to approve it."),
    ] = None

    def __post_init__(self) -> None:
        """Refuse what cannot be counted."""
        if self.of is GuardMeasure.NODES:
            if self.by is GuardScope.NODE:
                message = "counts nodes by node, where there is one: count its pods, with `of: pods`"
                raise ValueError(message)
            return
        what = "pods" if self.of is GuardMeasure.PODS else "owners"
        if self.share_percent is not None:
            message = f"has a share, which is of nodes: give a count of {what}"
            raise ValueError(message)
        if self.within_seconds > LONGEST_OF_PODS_SECONDS:
            message = f"counts {what} within more than 1h: so long pods that have left are remembered"
            raise ValueError(message)
        if self.of is GuardMeasure.OWNERS_LOSING_ALL and self.by is not GuardScope.TAINT_KEY:
            message = f"counts owners by {self.by}, and an owner has pods on several nodes: leave `by` out"
            raise ValueError(message)
