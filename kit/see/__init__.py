"""What a running service knows now, for people: its rows as evictions, nodes and clusters.

`reading` reads them from Kafka, `stored_state` keeps them, and the others are pure: rows and an instant in, items out.
"""
