"""Kubernetes' other rules for taints and tolerations as pure functions, for `evictstream rules` and `what-if`.

- `validation`: what the API server refuses, all errors with field paths (semantics.md section 2);
- `scheduling`: filter, score, cordon, kubelet (section 5);
- `admission`: where the tolerations of a pod come from (section 9);
- `kubectl`: the grammar of `kubectl taint` (section 10);
- `selectors`: label selectors; `precedence`: which of several tolerations decides.

What the service itself decides by is `models.kubernetes`. `docs/kubernetes-rules.md` has each rule with its source.
"""
