"""The web leg: search, fetch, read."""
