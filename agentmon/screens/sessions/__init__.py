"""Conversations: their list, one of them, and what is said to an agent."""
