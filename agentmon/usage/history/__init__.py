"""Reads what was said and done in the conversations of agents out of their own files.

Pure: whole lines and a state in, messages and tool calls out. It imports the domain and the room of usage alone.
"""
