"""Measuring the search: runs on a judged set of questions, what they show, and how sure that is (mission.md §8)."""
