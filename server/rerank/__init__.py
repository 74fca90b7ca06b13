"""Second opinions on the order of evidence."""
