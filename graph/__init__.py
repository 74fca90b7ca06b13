"""The knowledge: pages, chunks and entities, their links and their vectors."""
