"""What waits for a person, and how it is answered."""
