"""Where pages come from: one module per kind of wiki."""
