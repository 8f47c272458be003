"""Agents, what they can be asked to do, and the programs of this machine."""
