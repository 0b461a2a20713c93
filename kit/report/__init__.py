"""What happened in a replay: collected while it runs, shown by a page for browsers."""
