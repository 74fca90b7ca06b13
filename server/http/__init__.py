"""The HTTP interfaces: our own API and the OpenAI-compatible one."""
