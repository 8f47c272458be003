"""What agents cost, budgets and limits."""
