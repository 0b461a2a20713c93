"""What a cluster may be called on the topics: one rule, for keys as they come in and for whoever names a cluster.

A key is `<cluster>/<node>`, and a node's name has no slash, so neither may the cluster's. The name of a context
often has one: `aws eks update-kubeconfig` makes it of an ARN, OpenShift of namespace, server and user.
"""

from __future__ import annotations

from typing import Final

ANY_CLUSTER: Final = "*"
"""Key and value have it where a signal is about no single cluster; so no cluster may have this name."""

LARGEST_KEY: Final = 1_024
"""Bytes of a key; keys are cached, and all rows contain them."""

LONGEST_NODE_NAME: Final = 253
"""Bytes of a node's name, a DNS subdomain."""

LONGEST_CLUSTER_NAME: Final = LARGEST_KEY - LONGEST_NODE_NAME - 1
"""Bytes of a cluster's name, 770: with any node's name behind it the key has its largest size."""

_PLAIN: Final = "prod-eu-1"
_LONGEST_USABLE: Final = 63  # characters of a proposal: people will type it, and tables show it


def cluster_name_problem(name: str) -> str | None:
    """Say why keys cannot carry a cluster's name; None if they can.

    Uppercase, spaces and any other character are fine, as Kafka and JSON carry them.
    """
    if not name:
        return "it is empty"
    if name == ANY_CLUSTER:
        return "it stands for no single cluster"
    if "/" in name:
        return "it has a slash, which ends the cluster's name in a key"
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
    name = chosen.replace("/", "-").replace("\0", "-").strip("-* ")[:_LONGEST_USABLE]
    return _PLAIN if cluster_name_problem(name) else name
