"""The kit's commands, one file for each; `streams.cli.main` says how to add one."""
