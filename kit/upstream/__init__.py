"""Reference models of Kubernetes' own controllers, to compare the service with; the service uses none of them.

Experimental and private: they may change with any release.
"""
