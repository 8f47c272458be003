"""Questions that any screen asks."""
