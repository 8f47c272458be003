"""What a run changed, to read and judge."""
