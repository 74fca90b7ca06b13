"""Tests of the web leg against real sockets on 127.0.0.1."""
