"""Pictures of a replay: collected while it runs, shown by a page for browsers and by files for documents."""
