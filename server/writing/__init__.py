"""Long pieces, section by section, each with its own evidence (mission.md §7)."""
