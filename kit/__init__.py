"""The kit: what reads, replays, judges, explains and shows what the service does, and Kubernetes' rules.

A worker, a feed or an executor needs nothing of it, and import-linter holds that neither `models` nor `streams` imports
it; the command line finds its commands by name. In here imports point one way: `cli`, then `demo` and `conformance`,
then `report` and `see`, `replay`, then `oracle` and `what_if`, then `recordings` and `upstream`, then `inputs` and
`rules`.
`rules`, `upstream` and `what_if` are as pure as `models`. `oracle` shares no line with what it judges.
"""
