"""Real Neo4j, Ollama and SearXNG for the tests, without Docker: `python -m tests.services.run start all`."""
