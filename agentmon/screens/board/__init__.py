"""The board, and what is done to its cards."""
