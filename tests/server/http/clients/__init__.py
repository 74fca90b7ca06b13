"""Programs over other people's client libraries, each run in an environment of its own against a real server."""
