"""Reads what agents write down of their conversations: pure functions of the bytes, without files or clocks."""
