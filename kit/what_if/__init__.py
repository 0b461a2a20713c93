"""What a change of nodes would do to their pods, before it is made.

Nothing is decided here: the steps and rules of `evictstream.models.eviction` and `evictstream.models.kubernetes` are
applied to copies of what is known of a cluster.
"""
