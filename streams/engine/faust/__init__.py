"""The Faust application: what Faust does here, and what is put in its place."""
