"""The command line: one file per command. `main` says how to add one."""
