"""The three kinds of patches that Kubernetes takes, as far as a pod's conditions and UID need them."""

from __future__ import annotations

import copy
from typing import Any, Final

from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Object, refusal

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


def patched(stored: Object, request: FakeRequest) -> Object | FakeAnswer:
    """Apply the request's patch to a copy, or refuse it."""
    copied = {"status": {}, **copy.deepcopy(stored)}
    kind = request.content_type.partition(";")[0]
    if kind == JSON_PATCH and isinstance(request.body, list):
        return _stepwise(copied, request.body)
    if kind in {MERGE_PATCH, STRATEGIC_PATCH} and isinstance(request.body, dict):
        merged: Object = _merged(copied, request.body, is_strategic=kind == STRATEGIC_PATCH)
        return merged
    if kind in {JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH}:
        return refusal(400, "error decoding patch")
    return refusal(
        415, f"the body of the request was in an unknown format - accepted media types include: {JSON_PATCH}"
    )


def _merged(before: Any, patch: Any, *, is_strategic: bool) -> Any:
    if isinstance(patch, list) and is_strategic and all("type" in one for one in patch):  # conditions
        by_type = {one["type"]: one for one in before or ()}
        for one in patch:
            by_type[one["type"]] = by_type.get(one["type"], {}) | one
        return list(by_type.values())
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value, is_strategic=is_strategic)
    return result


def _stepwise(stored: Object, steps: list[Object]) -> Object | FakeAnswer:
    for step in steps:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place: Any = stored
        try:
            for part in way:
                place = place[int(part)] if isinstance(place, list) else place[part]
            if step["op"] == "test":
                if (place[int(last)] if isinstance(place, list) else place[last]) != step["value"]:
                    return refusal(422, f"the server rejected our request: testing value {step['path']} failed")
            elif isinstance(place, list) and step["op"] == "add":
                place.insert(len(place) if last == "-" else int(last), step["value"])
            elif step["op"] in {"add", "replace"}:
                place[int(last) if isinstance(place, list) else last] = step["value"]
            else:
                del place[int(last) if isinstance(place, list) else last]
        except (KeyError, IndexError, TypeError, ValueError):
            return refusal(422, f"the server rejected our request: {step['path']} cannot be had")
    return stored
