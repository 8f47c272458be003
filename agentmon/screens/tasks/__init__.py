"""The page of a task, its editor, and what starts it."""
