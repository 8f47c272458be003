"""Which adapter speaks which protocol; each is imported only when a conversation needs it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Adapter

ADAPTERS = {
    "stream-json": ("stream_json.adapter", "StreamJsonAdapter"),
    "app-server": ("app_server.adapter", "AppServerAdapter"),
    "acp": ("acp.adapter", "AcpAdapter"),
}
"""Protocol to module in this folder and name of the class."""


def adapter_class(protocol: str) -> type[Adapter]:
    """Return the class that speaks the protocol.

    Raises:
        ValueError: No adapter speaks it.
    """
    if protocol not in ADAPTERS:
        raise ValueError(f"No adapter speaks the protocol {protocol!r}; there are {', '.join(sorted(ADAPTERS))}.")
    module_name, class_name = ADAPTERS[protocol]
    package = __name__.rpartition(".")[0]
    module = __import__(f"{package}.{module_name}", fromlist=[class_name])
    found: type[Adapter] = getattr(module, class_name)
    return found


def make_adapter(launch: Mapping[str, object]) -> Adapter:
    """Return a new adapter for the launch, by its field ``protocol``.

    Raises:
        ValueError: No adapter speaks that protocol.
    """
    return adapter_class(str(launch.get("protocol") or ""))(launch)
