"""The patches that are ready for aiokafka (`docs/upstream/`)."""
