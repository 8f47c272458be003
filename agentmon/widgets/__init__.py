"""Widgets: dumb views, a value in and a message out. They see the domain, logs and Textual, nothing else."""
