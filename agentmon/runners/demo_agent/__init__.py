"""The demo's agent: a program that plays a conversation in Claude Code's protocol; no model is called.

It edits files and runs commands for real, in its working folder, after it was allowed to. Standard library only.
"""
