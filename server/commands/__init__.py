"""The command line, one file per command; `server/cli.py` loads each only when it is called."""
