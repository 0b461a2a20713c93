"""What `evictstream what-if --silent` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.streams.cli.output import OutputFormat, print_json, print_table, say, say_title

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evictstream.kit.what_if.silent_nodes import SilencePreview

_MOST_PODS = 50


def print_silence(
    preview: SilencePreview,
    cluster: str,
    *,
    seconds: int,
    flags: Mapping[str, str | float],
    output: OutputFormat,
) -> None:
    """Print fewest and most, and in text some of the pods, those that surely go first.

    Args:
        preview: what was played.
        cluster: its name.
        seconds: for how long.
        flags: of the controller manager that were given.
        output: as what.
    """
    outcome = preview.outcome
    surely, possibly = sorted(outcome.surely_evicted), sorted(outcome.possibly_evicted - outcome.surely_evicted)
    if output is OutputFormat.JSON:
        print_json(
            {
                "cluster": cluster,
                "seconds": seconds,
                "flags": dict(flags),
                "plays": outcome.plays,
                "nodes": preview.nodes,
                "labelsNotKnown": preview.unlabelled,
                "silent": sorted(preview.silent),
                "pods": preview.pods,
                "tainted": dict(zip(("fewest", "most"), outcome.taints, strict=True)),
                "evicted": dict(zip(("fewest", "most"), outcome.evictions, strict=True)),
                "surelyEvicted": surely,
                "possiblyEvicted": possibly,
            }
        )
        return
    say_title(f"{len(preview.silent)} of {preview.nodes} nodes of {cluster} silent for {seconds} s")
    print_table(
        ["Kubernetes' own controllers", "fewest", "most"],
        [
            ["nodes that get unreachable:NoExecute", *map(str, outcome.taints)],
            [f"evicted, of {preview.pods} pods", *map(str, outcome.evictions)],
        ],
    )
    if preview.unlabelled:
        say(f"{preview.unlabelled:,} nodes have incomplete labels: their zones may be wrong")
    if surely or possibly:
        say()
        rows = [[pod, "surely"] for pod in surely] + [[pod, "perhaps"] for pod in possibly]
        print_table(["pod", "evicted"], rows[:_MOST_PODS])
        if len(rows) > _MOST_PODS:
            say(f"and {len(rows) - _MOST_PODS:,} more; -o json has all")
