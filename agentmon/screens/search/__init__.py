"""The search over everything, and where it leads."""
