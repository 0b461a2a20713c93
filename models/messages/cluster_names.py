"""What a cluster may be called on the topics: one rule, for keys as they come in and for whoever names a cluster.

The key of every record is the cluster's name. It has no slash, which ends the name in rows. The name of a context
often has one: `aws eks update-kubeconfig` makes it of an ARN, OpenShift of namespace, server and user.
"""

from __future__ import annotations

from typing import Final

LONGEST_CLUSTER_NAME: Final = 770
"""Bytes of a cluster's name: all rows contain it, in at most 1,024 bytes with a slash and the name of a node."""

LONGEST_NODE_NAME: Final = 253
"""Bytes of a node's name, a DNS subdomain."""

_PLAIN: Final = "prod-eu-1"
_LONGEST_USABLE: Final = 63  # characters of a proposal: people will type it, and tables show it


def cluster_name_problem(name: str) -> str | None:
    """Say why keys cannot carry a cluster's name; None if they can.

    Uppercase, spaces and any other character are fine, as Kafka and JSON carry them.
    """
    if not name:
        return "it is empty"
    if "/" in name:
        return "it has a slash, which ends the cluster's name in rows"
    if "\0" in name:
        return "it has a NUL"
    if (size := len(name.encode(errors="surrogatepass"))) > LONGEST_CLUSTER_NAME:
        return f"it has {size} bytes, more than {LONGEST_CLUSTER_NAME}"
    return None


def usable_name(text: str) -> str:
    """Make a name that keys can carry of a text that they cannot, such as the name of a context.

    Of an ARN it is the last part, the cluster's name in EKS; of other texts all of it, with dashes for slashes.
    """
    chosen = text.rpartition("/")[2] if text.startswith("arn:") else text
    name = chosen.replace("/", "-").replace("\0", "-").strip("- ")[:_LONGEST_USABLE]
    return _PLAIN if cluster_name_problem(name) else name
