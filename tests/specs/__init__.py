"""The model of one partition (`specs/`), searched exhaustively with Spin; docs/specification.md explains it."""
