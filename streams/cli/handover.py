"""`evictstream handover`: hand pods over where the built-in controller cannot be switched off."""

from __future__ import annotations

from typing import Annotated

import typer

from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json
from evictstream.streams.errors import ExitCode, WrongUseError
from evictstream.streams.handover.policy_objects import DEFAULT_MORE, MOST_MORE, NEVER_MOVED, policy_objects

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.callback()
def handover() -> None:
    """Hand pods over to evictstream where the built-in controller cannot be switched off, as on managed clusters.

    A policy of the API server moves `tolerationSeconds` into an annotation, which evictstream reads. The built-in
    controller stays on. These commands use the rights of your kubeconfig, not those of the service.
    """


@app.command()
def policy(
    more: Annotated[
        int | None,
        typer.Option(
            help="Backstop: so long after evictstream the built-in controller evicts what is still there. Default:"
            f" {DEFAULT_MORE}.",
            min=1,
            max=MOST_MORE,
            metavar="SECONDS",
        ),
    ] = None,
    none: Annotated[
        bool, typer.Option("--none", help="No backstop: the built-in controller never evicts what was moved.")
    ] = False,
    guard: Annotated[
        bool,
        typer.Option(help="Also refuse the annotation where rights on status or Bindings alone would write it."),
    ] = True,
    excluded: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            help=f"Leave its pods to the built-in controller; repeatable. Always: {', '.join(NEVER_MOVED)}.",
            metavar="NAME",
        ),
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Print the policy for `kubectl apply -f -`; needs Kubernetes 1.36 or newer.

    With a backstop, a toleration of 300 s becomes one of 300 + `--more`: if evictstream is dead, the built-in
    controller evicts later by so much. With `--none` it becomes one without seconds: nothing else evicts the pod then.

    Before you apply it, upgrade the workers: one that does not know the annotation keeps moved pods too long. A
    namespace opts out by the label `evictstream.io/handover=off`.

    Examples:

    * `evictstream handover policy | kubectl apply -f -`
    * `evictstream handover policy --more 86400 --exclude-namespace gke-managed-system > handover.yaml`
    * `evictstream handover policy --none --no-guard -o json`
    """
    from evictstream.streams.handover.object_files import objects_as_yaml

    if none and more is not None:
        raise WrongUseError("--more and --none contradict each other", next_step="give one of them")
    seconds = None if none else DEFAULT_MORE if more is None else more
    for name in excluded or ():
        _check_namespace(name)
    objects = policy_objects(seconds, guard=guard, excluded=excluded or ())
    if output is OutputFormat.JSON:
        print_json({"apiVersion": "v1", "kind": "List", "items": objects})
        return ExitCode.DONE
    chosen = "--none" if seconds is None else f"--more {seconds}"
    typer.echo(
        objects_as_yaml(objects, f"Made by `evictstream handover policy {chosen}`: see docs/managed-clusters.md."),
        nl=False,
    )
    return ExitCode.DONE


def _check_namespace(name: str) -> None:
    """Refuse what no namespace is called: the API server takes it, and it excludes nothing."""
    import re

    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise WrongUseError(
            f"--exclude-namespace {name} cannot be the name of a namespace",
            next_step="use small letters, digits and hyphens, at most 63",
        )
