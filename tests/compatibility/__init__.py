"""What a release has written is read by all that follow; `RELEASES` holds one file for each."""
