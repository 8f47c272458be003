"""The price book: what a billed answer costs, by the list price of its day, and where each figure comes from.

Money is exact until the end: one answer is rounded once, half to even, to a nano-dollar. An unknown price is None,
never 0. Nothing here reaches for the network but ``newest``, which is called only when a person asks for it.
"""
