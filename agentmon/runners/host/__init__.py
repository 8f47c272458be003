"""The small process in the pane that holds one program and records all it does.

Standard library only and few of its modules: no dataclasses, json, logging, pathlib, re, socket, subprocess or typing,
since each of them costs milliseconds and memory at every start. Only a run that speaks a protocol loads more, with
``conversation``.
"""
