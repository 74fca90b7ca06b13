"""Research on the web, and the knowledge a person approves of what it found (mission.md §6)."""
