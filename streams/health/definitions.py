"""What a metric is: its name, kind, labels and meaning. A scrape adds the values.

Alerts and dashboards are made from the same definitions, so they ask for nothing that does not exist.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

_Key = TypeVar("_Key")
"""The values of a metric's labels in their order: a tuple, or the value itself if there is one label."""


class Distribution(Protocol):
    """Counts by bucket; `counts` has one more than `bounds`, for what is above the last one."""

    @property
    def bounds(self) -> Sequence[float]:
        """Upper bounds, ascending."""

    @property
    def counts(self) -> Sequence[int]:
        """Values by bucket."""

    @property
    def total(self) -> float:
        """Sum of all values."""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric, whatever its kind.

    Attributes:
        name: as Prometheus stores it; that of a counter ends with `_total`.
        meaning: its HELP text.
        labels: names of its labels.
    """

    name: str
    meaning: str
    labels: tuple[str, ...] = ()


class CounterMetric(MetricDefinition):
    """A count that only grows, from 0 with its process."""

    def of(self, values: Mapping[_Key, float]) -> Metric:
        """Make the metric with these values."""
        family = CounterMetricFamily(self.name, self.meaning, labels=self.labels)
        for key, value in list(values.items()):
            family.add_metric(_texts(key), value)
        return family


class GaugeMetric(MetricDefinition):
    """A quantity that rises and falls."""

    def of(self, values: Mapping[_Key, float]) -> Metric:
        """Make the metric with these values."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for key, value in list(values.items()):
            family.add_metric(_texts(key), value)
        return family


class HistogramMetric(MetricDefinition):
    """A quantity by bucket; Prometheus stores `_bucket`, `_sum` and `_count`."""

    def of(self, values: Mapping[_Key, Distribution]) -> Metric:
        """Make the metric with these values."""
        family = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
        for key, value in values.items():
            bounds = [*map(str, value.bounds), "+Inf"]
            counts = itertools.accumulate(list(value.counts))
            family.add_metric(_texts(key), list(zip(bounds, counts, strict=True)), value.total)
        return family


BUILD_INFO = GaugeMetric(
    "evictstream_build_info", "Always 1; the labels name the program and its version.", ("program", "version")
)


def _texts(key: object) -> list[str]:
    return [str(part) for part in (key if isinstance(key, tuple) else (key,))]
