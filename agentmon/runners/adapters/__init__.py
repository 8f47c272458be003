"""Adapters: how a task becomes an argument list or a conversation; they do no input or output themselves."""
