"""What the API server would refuse: all errors of an object at once, each with its field path (semantics.md 2).

The functions take raw objects, as parsed from JSON or YAML; a wrong type is one more error.
"""

from evictstream.kit.rules.validation.field_errors import ErrorType, FieldError
from evictstream.kit.rules.validation.labels import (
    decimal_integer_errors,
    label_key_errors,
    label_value_errors,
    subdomain_errors,
)
from evictstream.kit.rules.validation.node_taints import EFFECTS, validate_node_taints, validate_taints
from evictstream.kit.rules.validation.pod_tolerations import validate_pod_tolerations, validate_tolerations
from evictstream.kit.rules.validation.unknown_fields import unknown_fields

__all__ = [
    "EFFECTS",
    "ErrorType",
    "FieldError",
    "decimal_integer_errors",
    "label_key_errors",
    "label_value_errors",
    "subdomain_errors",
    "unknown_fields",
    "validate_node_taints",
    "validate_pod_tolerations",
    "validate_taints",
    "validate_tolerations",
]
