"""The fields of a form over an agent, filled with what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text
from textual.containers import Horizontal
from textual.widgets import Checkbox, Input, Select

from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.errors import FieldError
from agentmon.domain.sandboxes import sandbox_of
from agentmon.domain.verifications import command_text, read_optional_command
from agentmon.screens.agents.field_words import (
    parse_fraction,
    parse_names,
    parse_tools,
    parse_whole,
    parse_words,
    words_text,
)
from agentmon.screens.dialogs.form_dialog import BoundField, bind
from agentmon.screens.place_fields import IsolationField, SandboxField, isolation_of
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import FormField, LineInput, TextBox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from textual.widget import Widget

    from agentmon.domain.agents import Agent

_ITS_OWN: Final = "its own default"
_MOST_AT_ONCE: Final = 1000
_MOST_TIER: Final = 4
_HOTTEST: Final = 2.0


class AgentFields:
    """Those that the agent does not need are None; ``bound`` has the others, in the order in which they were made."""

    def __init__(self, agent: Agent) -> None:
        config = agent.session_config
        flags = {} if config is None else config.flags
        self.bound: list[BoundField] = []
        self._agent = agent
        is_any = agent.slug == ANY_COMMAND_SLUG
        self.name = self._line("name", "Name", agent.name, read=_needed_name)
        self.role = self._line("role", "Role", agent.role or "", placeholder="reviewer", read=_text_or_none)
        self.binary = None if is_any else self._line("binary_path", "Program", agent.binary_path, read=_needed_program)
        self.base_args = (
            None
            if is_any
            else self._line(
                "base_args",
                "Arguments",
                words_text(agent.base_args),
                placeholder="before all others",
                read=lambda text: parse_words("base_args", text),
            )
        )
        self.working_dir = self._line(
            "working_dir",
            "Folder",
            agent.working_dir or "",
            placeholder="the workspace's, where the task names none",
            read=_text_or_none,
        )
        self.isolation = self._add(
            "isolation",
            IsolationField(agent.isolation, default="workspace default"),
            read=isolation_of,
            first="" if agent.isolation is None else agent.isolation.value,
        )
        self.sandbox = self._add(
            "sandbox",
            SandboxField(agent.sandbox, default="workspace default"),
            read=sandbox_of,
            first="" if agent.sandbox is None else agent.sandbox.value,
        )
        self.env_allowlist = self._line(
            "env_allowlist",
            "Environment",
            " ".join(agent.env_allowlist),
            placeholder="names that reach it: API_KEY ACME_*",
            read=parse_names,
        )
        self.max_concurrent = self._line(
            "max_concurrent",
            "At a time",
            str(agent.max_concurrent),
            read=lambda text: parse_whole(
                "max_concurrent", text or "0", least=0, most=_MOST_AT_ONCE, hint="0 means no limit of its own"
            ),
            help_text="runs; 0 is no limit",
        )
        self.is_active = self._add(
            "is_active", FormField("Enabled", Checkbox("takes work", agent.is_active, compact=True))
        )
        self.model: FormField | None = None
        self.permission_modes: FormField | None = None
        self.allowed: FormField | None = None
        self.denied: FormField | None = None
        self.instructions: FormField | None = None
        if config is not None:
            self.model = self._line(
                "model",
                "Model",
                agent.model or "",
                placeholder=_ITS_OWN,
                read=_text_or_none,
                help_text=", ".join(config.models),
            )
            if config.permission_modes:
                modes = [(Text(even_line(mode)), mode) for mode in sorted(config.permission_modes)]
                select: Select[str] = Select(
                    modes, value=config.permission_modes[0], allow_blank=False, compact=True, id="permission-modes"
                )
                self.permission_modes = self._add(
                    "permission_modes",
                    FormField("Permissions", select),
                    read=self._with_mode_first,
                    first=config.permission_modes[0],
                )
            if "allow_tool" in flags and "deny_tool" in flags:
                self.allowed = self._tools("Tools allowed", is_allowed=True)
                self.denied = self._tools("Tools denied", is_allowed=False)
            self.instructions = self._add(
                "instructions",
                FormField(
                    "Instructions",
                    TextBox(agent.instructions or "", id="instructions"),
                    help_text="told before every task",
                    id="instructions-field",
                ),
                read=lambda text: text if text.strip() else None,
            )
        self.verify = self._line(
            "verify",
            "Verification",
            command_text(agent.verify),
            placeholder="what its work has to pass: make test",
            read=read_optional_command,
        )
        self.description = self._line("description", "Description", agent.description)
        self._of_model = tuple(self._model_fields(agent))
        self._looks = (
            self._line("icon", "Icon", agent.icon, placeholder="one sign"),
            self._line("color", "Colour", agent.color, placeholder="#d97757"),
        )
        self.seldom: tuple[FormField, ...] = (self.verify, self.description, *self._of_model, *self._looks)

    @property
    def seldom_rows(self) -> tuple[Widget, ...]:
        """The fields that are seldom needed, in new rows."""
        of_model = (Horizontal(*self._of_model, classes="pair"),) if len(self._of_model) > 1 else self._of_model
        return (self.verify, self.description, *of_model, Horizontal(*self._looks, classes="pair"))

    @property
    def summary(self) -> str:
        """What is folded, in words."""
        words = {one.name: str(one.typed).strip() for one in self.bound if one.field in self.seldom}
        parts = [
            f"verify {words['verify']}" if words["verify"] else "",
            words["description"],
            f"tier {words['model_tier']}" if words.get("model_tier") else "",
            f"temperature {words['temperature']}" if words.get("temperature") else "",
            words["icon"],
            words["color"],
        ]
        return " · ".join(part for part in parts if part)

    def note_variables(self, environ: Mapping[str, str]) -> None:
        """Say which of the named variables are not set here; patterns name whatever there is."""
        control = self.env_allowlist.control
        names = parse_names(control.value) if isinstance(control, Input) else ()
        added = [name for name in names if name not in self._agent.env_allowlist]
        unset = [name for name in added if not name.endswith("*") and name not in environ]
        self.env_allowlist.show_note(f"not set here: {', '.join(unset)}" if unset else "")

    def changed_tools(self, changes: dict[str, Any]) -> dict[str, bool | None]:
        """Take the two lists of tools out of the changes and return what they make of the agent's tools.

        Raises:
            FieldError: A tool is in both.
        """
        before = self._agent.tools
        told = {True: changes.pop("allowed_tools", None), False: changes.pop("denied_tools", None)}
        wanted: dict[str, bool] = {}
        for is_allowed, names in told.items():
            kept = [name for name, was in before.items() if was is is_allowed]
            for name in names if isinstance(names, tuple) else kept:
                if name in wanted:
                    raise FieldError("denied_tools", f"{name} cannot be allowed and denied", hint="take it out of one")
                wanted[name] = is_allowed
        gone: dict[str, bool | None] = {name: None for name in before if name not in wanted}
        return gone | {name: is_allowed for name, is_allowed in wanted.items() if before.get(name) is not is_allowed}

    def _model_fields(self, agent: Agent) -> Iterator[FormField]:
        if agent.session_config is None:
            return
        yield self._line(
            "model_tier",
            "Tier",
            "" if agent.model_tier is None else str(agent.model_tier),
            placeholder="1 strongest, 4 cheapest",
            read=lambda text: _number_or_none(
                text, lambda word: parse_whole("model_tier", word, least=1, most=_MOST_TIER)
            ),
        )
        if agent.takes_temperature:
            yield self._line(
                "temperature",
                "Temperature",
                "" if agent.temperature is None else f"{agent.temperature:g}",
                placeholder=_ITS_OWN,
                read=lambda text: _number_or_none(
                    text, lambda word: parse_fraction("temperature", word, least=0, most=_HOTTEST)
                ),
            )

    def _tools(self, label: str, *, is_allowed: bool) -> FormField:
        name = "allowed_tools" if is_allowed else "denied_tools"
        tools = sorted(tool for tool, was in self._agent.tools.items() if was is is_allowed)
        return self._line(
            name,
            label,
            " ".join(tools),
            placeholder="Read Bash(git log:*)" if is_allowed else "WebFetch",
            read=lambda text: parse_tools(name, text),
            help_text="" if is_allowed else "its own tools; those not named are as it has them",
        )

    def _with_mode_first(self, mode: str) -> tuple[str, ...]:
        config = self._agent.session_config
        modes = () if config is None else config.permission_modes
        return (mode, *(other for other in modes if other != mode))

    def _line(
        self,
        name: str,
        label: str,
        text: str,
        *,
        placeholder: str = "",
        read: Callable[[str], object] = str.strip,
        help_text: str = "",
    ) -> FormField:
        box = LineInput(text, placeholder=placeholder, id=name.replace("_", "-"))
        return self._add(name, FormField(label, box, help_text=help_text), read=read)

    def _add(
        self, name: str, field: FormField, *, read: Callable[[str], object] | None = None, first: object = None
    ) -> FormField:
        self.bound.append(bind(name, field, read, first=first))
        return field


def _text_or_none(text: str) -> str | None:
    return text.strip() or None


def _number_or_none(text: str, read: Callable[[str], object]) -> object:
    return read(text) if text.strip() else None


def _needed_name(text: str) -> str:
    if not text.strip():
        raise FieldError("name", "an agent needs a name", hint="as people call it: Claude Code")
    return text.strip()


def _needed_program(text: str) -> str:
    if not text.strip():
        raise FieldError("binary_path", "name the program that is started", hint="a name on the PATH, or a whole path")
    return text.strip()
