"""Why an API server, or what it is told, is not as needed."""

from __future__ import annotations

from collections.abc import Sequence

from evictstream.streams.errors.base import FoundProblemError


class KubernetesError(FoundProblemError):
    """An API server cannot be used as it has to be."""


class CredentialsError(KubernetesError):
    """There are no credentials at `place`, or they cannot be read, for `reason`."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(
            f"no credentials from {place}: {reason}",
            next_step="give a file with --kubeconfig or a context with --cluster NAME=CONTEXT; test both with kubectl",
        )


class ClusterMovedError(KubernetesError):
    """The configuration at `place` leads to `found` now, and this process serves the cluster at `fixed`.

    Both may be the same where another proxy, or another name in the certificate, leads there.
    """

    def __init__(self, *, place: str, fixed: str, found: str) -> None:
        self.place = place
        self.fixed = fixed
        self.found = found
        super().__init__(
            f"{place} now leads to {found}, or takes another way there; this process started with {fixed}",
            next_step="revert the change, or restart this process if it is intended",
        )


class ClusterChangedError(KubernetesError):
    """At `host` answers the cluster with the UID `uid`, and this process serves the one with `expected`."""

    def __init__(self, *, host: str, uid: str, expected: str) -> None:
        self.host = host
        self.uid = uid
        self.expected = expected
        super().__init__(
            f"another cluster answers at {host}: its UID is {uid}, not {expected}; nothing is sent to it",
            next_step="check where the address leads",
        )


class ApiUnreachableError(KubernetesError):
    """The API server at `host` gave no answer, or half of one, for `reason`.

    `is_answered` where somebody has answered, and not as an API server does.
    """

    def __init__(self, *, host: str, reason: str, is_answered: bool = False) -> None:
        self.host = host
        self.reason = reason
        self.is_answered = is_answered
        super().__init__(f"{'unusable answer' if is_answered else 'no answer'} from {host}: {reason}")


class NotSentError(KubernetesError):
    """A request was not sent to `host`: when it could be, it was too late for it."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(f"a request was not sent to {host}: it would have come too late")


class ApiRefusedError(KubernetesError):
    """The API server at `host` answered a request for `path` with `status`, for `reason`.

    `retry_after_seconds` is what it asks to wait; None if it does not.
    """

    def __init__(
        self, *, host: str, path: str, status: int, reason: str, retry_after_seconds: float | None = None
    ) -> None:
        self.host = host
        self.path = path
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{host} answered {status} to {path}: {reason or 'no reason given'}")


class ClusterNameTakenError(KubernetesError):
    """Another cluster, with the UID `other_uid`, is fed under the name `cluster`; this one has the UID `uid`."""

    def __init__(self, *, cluster: str, uid: str, other_uid: str) -> None:
        self.cluster = cluster
        self.uid = uid
        self.other_uid = other_uid
        super().__init__(
            f"the name {cluster} belongs to the cluster with UID {other_uid}; this cluster has {uid}",
            next_step="use another name, or `evictstream feed --new-epoch` if this cluster replaces the other",
        )


class MissingRightsError(KubernetesError):
    """The API server of `cluster` does not allow what the executor's `mode` needs: `missing`, which `file` grants."""

    def __init__(self, *, cluster: str, missing: Sequence[str], mode: str, file: str) -> None:
        self.cluster = cluster
        self.missing = tuple(missing)
        self.mode = mode
        super().__init__(
            f"mode {mode} lacks rights in {cluster}: {', '.join(missing)}",
            next_step=f"grant them: kubectl apply -f deploy/kubernetes/{file}",
        )


class ApiNotServedError(KubernetesError):
    """The API server of `cluster` does not serve the `version` that the mode `request` needs; `gate` switches it on."""

    def __init__(self, *, cluster: str, version: str, gate: str) -> None:
        self.cluster = cluster
        self.version = version
        self.gate = gate
        super().__init__(
            f"mode request needs EvictionRequests, and the API server of {cluster} does not serve {version}",
            next_step=f"start kube-apiserver (1.37 or newer) with --feature-gates={gate}=true and"
            f" --runtime-config={version}=true, or use the mode evict or delete",
        )
