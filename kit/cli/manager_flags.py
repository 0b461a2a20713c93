"""Flags of Kubernetes' controller manager that `evictstream what-if --silent` takes, in its own names and notation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypedDict

import typer

from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.upstream.lifecycle import LifecycleSettings, RequestPace

SHORTEST_PERIOD_US: Final = 1_000_000
"""Of `--node-monitor-period`: each period looks at all nodes, so a shorter one takes minutes to play."""

_PANEL: Final = "Flags of kube-controller-manager, with --silent"
_UNITS_US: Final = {"ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ns|us|µs|ms|s|m|h)")


def _flag(name: str, metavar: str, help_: str) -> Any:
    """Declare a flag; what stands in brackets is the release's default."""
    return typer.Option(name, help=help_, metavar=metavar, rich_help_panel=_PANEL)


MonitorPeriod: TypeAlias = Annotated[
    str | None, _flag("--node-monitor-period", "DURATION", "Time between two checks of all nodes [5s].")
]
GracePeriod: TypeAlias = Annotated[
    str | None,
    _flag(
        "--node-monitor-grace-period",
        "DURATION",
        "Time without heartbeats until a node is not ready [50s; 40s before Kubernetes 1.32].",
    ),
]
EvictionRate: TypeAlias = Annotated[
    float | None, _flag("--node-eviction-rate", "RATE", "Nodes tainted per second in each zone [0.1].")
]
SecondaryRate: TypeAlias = Annotated[
    float | None,
    _flag("--secondary-node-eviction-rate", "RATE", "The same in a large zone in partial disruption [0.01]."),
]
LargeSize: TypeAlias = Annotated[
    int | None, _flag("--large-cluster-size-threshold", "NODES", "A zone with more nodes is large [50].")
]
UnhealthyShare: TypeAlias = Annotated[
    float | None,
    _flag(
        "--unhealthy-zone-threshold",
        "SHARE",
        "Share of not-ready nodes at which a zone is in partial disruption [0.55].",
    ),
]
ApiQps: TypeAlias = Annotated[float | None, _flag("--kube-api-qps", "RATE", "API requests per second [20].")]
ApiBurst: TypeAlias = Annotated[int | None, _flag("--kube-api-burst", "COUNT", "API requests in a burst [30].")]
FeatureGates: TypeAlias = Annotated[
    str | None,
    _flag(
        "--feature-gates",
        "GATE=BOOL",
        "NodeControllerLeaseCircuitBreaker=false, as before Kubernetes 1.37: no live look at leases [true].",
    ),
]

_SETTINGS: Final = {
    "--node-monitor-period": "monitor_period_us",
    "--node-monitor-grace-period": "monitor_grace_period_us",
    "--node-eviction-rate": "eviction_rate",
    "--secondary-node-eviction-rate": "secondary_eviction_rate",
    "--large-cluster-size-threshold": "large_cluster_size_threshold",
    "--unhealthy-zone-threshold": "unhealthy_zone_threshold",
}
_GATES: Final = {"NodeControllerLeaseCircuitBreaker": "reads_live_leases"}
_PACE: Final = {"--kube-api-qps": "requests_per_second", "--kube-api-burst": "burst"}


class ControllerFlags(TypedDict):
    """What a preview of silent nodes takes of them."""

    settings: LifecycleSettings
    pace: RequestPace


class ManagerFlags:
    """The flags that were given.

    Attributes:
        given: by name, as they were typed.
    """

    def __init__(self, flags: Mapping[str, str | float | None]) -> None:
        """Take the flags by name; None stands for one that was not given."""
        self.given = {name: value for name, value in flags.items() if value is not None}

    def read(self) -> ControllerFlags:
        """Give settings and pace of the controller, as released where nothing was given.

        Raises:
            WrongUseError: a duration is none, or a controller could not run with a number.
        """
        from evictstream.kit.upstream.lifecycle import LifecycleSettings, RequestPace, SettingError

        values = {
            name: _duration_us(name, value) if isinstance(value, str) else value
            for name, value in self.given.items()
            if name != "--feature-gates"
        }
        gates = _gates(str(self.given.get("--feature-gates", "")))
        if values.get("--node-monitor-period", SHORTEST_PERIOD_US) < SHORTEST_PERIOD_US:
            raise WrongUseError("--node-monitor-period is shorter than 1s", next_step="give 1s or more")
        settings: dict[str, Any] = {_SETTINGS[name]: value for name, value in values.items() if name in _SETTINGS}
        pace: dict[str, Any] = {_PACE[name]: value for name, value in values.items() if name in _PACE}
        try:
            return {
                "settings": LifecycleSettings(**settings, **gates),
                "pace": RequestPace(**pace),
            }
        except SettingError as error:
            names = {field: name for name, field in (_SETTINGS | _PACE).items()}
            raise WrongUseError(f"{names[error.field]} {error.rule}") from error


def _gates(text: str) -> dict[str, bool]:
    """Read gates as Kubernetes' programs do, such as `A=true,B=false`; only those that decide here are known."""
    gates = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in _GATES:
            raise WrongUseError(f"--feature-gates {name} decides nothing here", next_step=f"known: {', '.join(_GATES)}")
        if value not in {"true", "false"}:
            raise WrongUseError(f"--feature-gates {part} is neither true nor false", next_step=f"{name}=false")
        gates[_GATES[name]] = value == "true"
    return gates


def _duration_us(name: str, text: str) -> int:
    """Read a duration as Go writes it, such as `40s` or `1m30s`, in microseconds."""
    parts = _PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise WrongUseError(f"{name} {text} is not a duration", next_step="for example 40s or 1m30s")
    return round(sum(float(number) * _UNITS_US[unit] for number, unit in parts))
