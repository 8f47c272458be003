"""Adapters that speak an agent's own protocol, without input or output of their own.

The object ``conversation`` of ``spec.json`` has these fields; all but the first three may be missing or null:

``protocol``: ``stream-json``, ``app-server`` or ``acp``.
``prompt``: the first message.
``working_dir``: absolute path.
``session_id``: agentmon's own id of the conversation, a UUID, which the agent is told to use where it takes one.
``session_ref``: the agent's own id of the conversation to go on with.
``start``: ``fresh``, ``resume`` (go on with ``session_ref``) or ``fork`` (a copy of it).
``model``, ``permission_mode``, ``instructions``: texts.
``client_version``: agentmon's version.
"""
