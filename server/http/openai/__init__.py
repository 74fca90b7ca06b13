"""OpenAI's form of the API: what its clients send, and what they want to read."""
