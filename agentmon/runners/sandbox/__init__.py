"""The sandbox of a run: what a program finds of this machine, and what it may write there."""
