"""Models and modes of a session: what the agent offers, what is chosen, and how another one is chosen."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, objects_in, ref_in, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_OFFERED = 200


class Choice:
    """One thing that can be chosen."""

    __slots__ = ("config_id", "current", "offered")

    def __init__(self) -> None:
        self.current = ""
        self.offered: list[str] = []
        self.config_id = ""
        """Id of the configuration option, for an agent that has no method of its own for it."""

    def named(self, value: str) -> str:
        """Return what the agent calls this choice: as it is, or the one address that ends in ``#`` and this name."""
        if value in self.offered:
            return value
        addresses = [offered for offered in self.offered if offered.endswith(f"#{value}")]
        return addresses[0] if len(addresses) == 1 else value


class Options:
    """The model and the mode of a session."""

    __slots__ = ("mode", "model")

    def __init__(self) -> None:
        self.model = Choice()
        self.mode = Choice()

    def learn(self, told: Mapping[str, object]) -> None:
        """Take over what a session's answer or ``config_option_update`` tells."""
        for option in objects_in(told, "configOptions"):
            category = text_in(option, "category") or text_in(option, "id")
            choice = self.model if category == "model" else self.mode if category == "mode" else None
            if choice is not None and ref_in(option, "id"):
                choice.config_id = ref_in(option, "id")
                choice.current = ref_in(option, "currentValue") or choice.current
                choice.offered = _values(option) or choice.offered
        self._learn_own(self.model, object_in(told, "models"), ("availableModels", "modelId", "currentModelId"))
        self._learn_own(self.mode, object_in(told, "modes"), ("availableModes", "id", "currentModeId"))

    def fields(self) -> dict[str, object]:
        """Return the fields of an event ``session``."""
        return {
            "model": self.model.current or None,
            "permission_mode": self.mode.current or None,
            "models": self.model.offered,
            "permission_modes": self.mode.offered,
        }

    def request(self, name: str, value: str) -> tuple[str, dict[str, object]] | None:
        """Return the method and the parameters that choose a ``model`` or ``mode``; None when there is no way."""
        choice = self.model if name == "model" else self.mode
        if choice.config_id:
            return "session/set_config_option", {"configId": choice.config_id, "value": value}
        if choice.offered or choice.current:
            return f"session/set_{name}", {f"{name}Id": value}
        return None

    @staticmethod
    def _learn_own(choice: Choice, told: Mapping[str, object], keys: tuple[str, str, str]) -> None:
        offered = [ref_in(one, keys[1]) for one in objects_in(told, keys[0])[:MAX_OFFERED]]
        if not told:
            return
        choice.config_id = ""
        choice.offered = list(filter(None, offered)) or choice.offered
        choice.current = ref_in(told, keys[2]) or choice.current


def _values(option: Mapping[str, object]) -> list[str]:
    values: list[str] = []
    for entry in objects_in(option, "options", MAX_OFFERED):
        members = objects_in(entry, "options", MAX_OFFERED) or [entry]
        values += filter(None, (ref_in(member, "value") for member in members))
    return values[:MAX_OFFERED]
