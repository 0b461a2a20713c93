"""Parts of PromQL that are made from definitions of metrics, so that no query names what does not exist."""

from __future__ import annotations

import re
from typing import Final

from evictstream.streams.executor.metric_definitions import ExecutorMetric
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.health.definitions import BUILD_INFO, CounterMetric, HistogramMetric, MetricDefinition
from evictstream.streams.worker.metric_definitions import WorkerMetric

DEFINED: Final = (
    BUILD_INFO,
    *(
        each
        for program in (WorkerMetric, ExecutorMetric, FeedMetric)
        for each in vars(program).values()
        if isinstance(each, MetricDefinition)
    ),
)

TARGET_LABELS: Final = ("namespace", "job", "pod", "instance")
"""Labels that Prometheus adds to what it scrapes; `namespace` and `pod` only in Kubernetes."""

_MATCHER: Final = re.compile(r'(\w+)(?:=|!=|=~|!~)"[^"]*"')


def series(metric: MetricDefinition, *matchers: str) -> str:
    """Select the series of a metric.

    Args:
        metric: no histogram; those have `buckets`.
        matchers: such as `cluster="lab"`.

    Raises:
        TypeError: the metric is a histogram.
        ValueError: the metric has no such label.
    """
    if isinstance(metric, HistogramMetric):
        message = f"{metric.name} is a histogram: use its buckets"
        raise TypeError(message)
    return _selected(metric.name, (*metric.labels, *TARGET_LABELS), matchers)


def buckets(metric: HistogramMetric, *matchers: str) -> str:
    """Select the buckets of a histogram, whose further label is `le`."""
    return _selected(f"{metric.name}_bucket", (*metric.labels, *TARGET_LABELS, "le"), matchers)


def meanings(query: str) -> list[str]:
    """Return the meanings of the metrics of evictstream that a query names, in the order of their definition."""
    names = {name.removesuffix("_bucket") for name in re.findall(r"\w+", query)}
    return [each.meaning for each in DEFINED if each.name in names]


def worst(by: str, expression: str) -> str:
    """Take the highest value of those with equal labels; `by` names these, such as `namespace, cluster`."""
    return f"max by ({by}) ({expression})"


def total(by: str, expression: str) -> str:
    """Add up those with equal labels."""
    return f"sum by ({by}) ({expression})"


def increase(metric: CounterMetric, *matchers: str, over: str) -> str:
    """Count how much a counter has grown in the time before, such as `1h`."""
    return f"increase({series(metric, *matchers)}[{over}])"


def rate(metric: CounterMetric, *matchers: str) -> str:
    """Return the growth of a counter a second, over the time that suits the resolution of a dashboard."""
    return f"rate({series(metric, *matchers)}[$__rate_interval])"


def _selected(name: str, labels: tuple[str, ...], matchers: tuple[str, ...]) -> str:
    for matcher in matchers:
        found = _MATCHER.fullmatch(matcher)
        if found is None or found[1] not in labels:
            message = f"{name} has no labels for {matcher}, but {', '.join(labels)}"
            raise ValueError(message)
    return f"{name}{{{', '.join(matchers)}}}" if matchers else name
