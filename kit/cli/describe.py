"""`evictstream describe`: all that a running service knows of one pod or one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.seeing import ClusterOption, present_us, read_known_cluster
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption
from evictstream.streams.errors import ExitCode, FoundProblemError, WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.replay.asked_pod import AskedPod
    from evictstream.kit.see.pods import ListedPod
    from evictstream.kit.see.stored_state import StoredNode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.callback()
def describe() -> None:
    """Show all that a running service knows of one pod or one node. It reads the topics alone."""


@app.command()
def pod(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The pod: NAMESPACE/NAME, its UID, or its name alone.", metavar="POD")],
    cluster: ClusterOption = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace of the pod.", metavar="NAME")
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Show one pod: its node's taints, its tolerations, when it has to leave and why, and what was done about it.

    What was decided before is told by `evictstream explain`.

    Examples:

    * `evictstream describe pod shop/cart-7d9`
    * `evictstream describe pod cart-7d9 -n shop --cluster prod-eu-1 -o json`
    """
    from evictstream.kit.cli.descriptions import print_pod
    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.replay.asked_pod import AskedPod, Match
    from evictstream.kit.see.evictions import of_node
    from evictstream.kit.see.pods import listed_pod
    from evictstream.kit.see.reading import silences_of
    from evictstream.streams.worker.service_config import cluster_rules

    if namespace is not None and "/" in name:
        raise WrongUseError(f"{name} names a namespace already", next_step="give the pod's name alone with --namespace")
    settings = global_options(context).settings
    asked = AskedPod(name if namespace is None else f"{namespace}/{name}")
    read = read_known_cluster(settings, cluster)
    with known_steering(settings) as newest:
        steering = newest()
    at_us, silences, rules = present_us(), silences_of(settings), cluster_rules(settings)
    found: dict[Match, list[tuple[StoredNode, ListedPod]]] = {match: [] for match in Match}
    addresses: list[str] = []
    for stored in read.state.nodes():
        if cluster not in (None, stored.aggregate.cluster):
            continue
        for one in stored.aggregate.pods.values():
            addresses.append(one.address)
            pod_namespace, _, pod_name = one.address.partition("/")
            match = asked.match(pod_namespace, pod_name, one.uid)
            if match is not Match.NONE:
                pending = of_node(stored, at_us, silences, steering)
                eviction = next((each for each in pending if each.pod_uid == one.uid), None)
                found[match].append(
                    (stored, listed_pod(stored, one, rules=rules.of(stored.aggregate.cluster), eviction=eviction))
                )
    pods = found[Match.EXACT] or found[Match.BY_NAME]
    _check_found(asked, {f"{one.namespace}/{one.pod}" for _, one in pods}, addresses)
    for number, (stored, seen) in enumerate(pods):
        print_pod(seen, stored.aggregate.node, at_us, output=output, is_first=not number)
    return ExitCode.DONE


def _check_found(asked: AskedPod, found: set[str], addresses: list[str]) -> None:
    if len(found) > 1:
        raise FoundProblemError(
            f"pods in {len(found)} namespaces are named {asked.text}",
            next_step=f"name one of {', '.join(sorted(found))}",
        )
    if not found:
        alike = asked.alike(addresses)
        hint = f"did you mean {' or '.join(alike)}?" if alike else "give NAMESPACE/NAME, or the UID"
        raise FoundProblemError(
            f"the service has no pod {asked.text}", next_step=f"{hint} `evictstream explain` knows pods that are gone"
        )


@app.command()
def node(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The node.", metavar="NODE")],
    cluster: ClusterOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Show one node: its `NoExecute` taints, whether its cluster's feed is heard, and how it stands with each pod.

    Examples:

    * `evictstream describe node n-1`
    * `evictstream describe node n-1 --cluster prod-eu-1 -o json`
    """
    from evictstream.kit.cli.descriptions import DescribedNode, print_node
    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.see.evictions import gate_of, heard_at
    from evictstream.kit.see.names import check_known
    from evictstream.kit.see.nodes import listed_node
    from evictstream.kit.see.pods import listed_pods
    from evictstream.kit.see.reading import silences_of
    from evictstream.streams.worker.service_config import cluster_rules

    settings = global_options(context).settings
    read = read_known_cluster(settings, cluster)
    with known_steering(settings) as newest:
        steering = newest()
    at_us, silences, rules = present_us(), silences_of(settings), cluster_rules(settings)
    nodes = [one for one in read.state.nodes() if cluster in (None, one.aggregate.cluster)]
    check_known("node", name, (one.aggregate.name for one in nodes))
    for number, stored in enumerate(one for one in nodes if one.aggregate.name == name):
        seen = listed_node(stored, at_us, silences)
        pods = listed_pods(stored, at_us, silences, rules.of(stored.aggregate.cluster), steering=steering)
        gate = gate_of(stored.cluster, at_us, silences, has_gap=stored.has_gap)
        described = DescribedNode(node=seen, gate=gate, heard_at=heard_at(stored.cluster), pods_on_it=tuple(pods))
        print_node(described, at_us, output=output, is_first=not number)
    return ExitCode.DONE
