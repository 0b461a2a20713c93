"""Hands pods of a cluster over to evictstream where the built-in controller cannot be switched off.

A policy of the API server moves `tolerationSeconds` into an annotation, which evictstream reads. This package writes
that policy. It runs with the rights of a cluster's administrator: no service imports it.
"""
