"""What programs this machine has, found by reading files alone; and the one way to ask a program about itself."""
