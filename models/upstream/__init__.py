"""Reference models of Kubernetes' own controllers, for replay and what-if to compare with; the service uses none."""
