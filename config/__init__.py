"""What the owner may change."""
