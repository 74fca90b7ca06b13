"""From a wiki to knowledge."""
