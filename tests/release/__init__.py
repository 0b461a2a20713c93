"""What has to hold before a release: `python -m tests.release`, or `make release-check`."""
