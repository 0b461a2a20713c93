"""Reference models of Kubernetes' controllers, for replay and what-if to compare with; streams uses none of them."""
