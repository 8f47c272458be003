"""Screens: each maps messages of its widgets to service calls and sets snapshots on them; no business rules."""
