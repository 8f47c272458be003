"""The forms by which MCP servers ask a person: a flat JSON schema out, its content back."""

from __future__ import annotations

from agentmon.domain.json_values import list_in, object_in, objects_in, text_in, texts_in
from agentmon.domain.letters import cut
from agentmon.domain.plain_text import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_FIELDS = 20
MAX_CHOICES = 50
MAX_TEXT_CHARACTERS = 2_000


def form_questions(schema: dict[str, object]) -> tuple[list[Event], dict[str, str]]:
    """Return the questions of a form, and for each question's text the name of its field."""
    questions: list[Event] = []
    names: dict[str, str] = {}
    fields = object_in(schema, "properties")
    for name in list(fields)[:MAX_FIELDS]:
        described = object_in(fields, name)
        text = text_in(described, "description") or text_in(described, "title") or name
        text = cut(storable(text), MAX_TEXT_CHARACTERS)
        if text in names:
            text = cut(text, MAX_TEXT_CHARACTERS - 20) + f" ({len(names) + 1})"
        names[text] = name
        choices = [
            {"key": cut(key, MAX_TEXT_CHARACTERS), "label": cut(label, MAX_TEXT_CHARACTERS)}
            for key, label in _choices(described).items()
        ]
        questions.append(
            {
                "question": text,
                "header": cut(text_in(described, "title"), MAX_TEXT_CHARACTERS),
                "choices": choices,
                "is_multiple": described.get("type") == "array",
            }
        )
    return questions, names


def form_content(schema: dict[str, object], replies: dict[str, list[str]]) -> dict[str, object]:
    """Return the content of the form for the texts given to its fields.

    Raises:
        ValueError: A field that is needed has no answer, or one that is no number, or not among its choices.
    """
    fields = object_in(schema, "properties")
    content: dict[str, object] = {}
    for name, texts in replies.items():
        if texts:
            content[name] = _value(name, object_in(fields, name), texts)
    missing = [name for name in texts_in(schema, "required", MAX_FIELDS) if name not in content and name in fields]
    if missing:
        raise ValueError(f"The form needs an answer to {cut(missing[0], 100)}.")
    return content


def _choices(field: dict[str, object]) -> dict[str, str]:
    if field.get("type") == "boolean":
        return {"true": "Yes", "false": "No"}
    source = object_in(field, "items") if field.get("type") == "array" else field
    options = objects_in(source, "oneOf", MAX_CHOICES) or objects_in(source, "anyOf", MAX_CHOICES)
    if options:
        return {text_in(option, "const"): text_in(option, "title") for option in options}
    keys, labels = (list_in(source, key, MAX_CHOICES) for key in ("enum", "enumNames"))
    named = zip(keys, [*labels, *keys[len(labels) :]], strict=False)
    return {key: label if isinstance(label, str) else key for key, label in named if isinstance(key, str)}


def _value(name: str, field: dict[str, object], texts: list[str]) -> object:
    choices = _choices(field)
    unknown = [text for text in texts if choices and text not in choices]
    if unknown:
        raise ValueError(f"{cut(unknown[0], 100)!r} is not among the choices of {cut(name, 100)}.")
    kind = field.get("type")
    if kind == "array":
        return texts
    if kind == "boolean":
        return texts[0] == "true"
    if kind in ("number", "integer"):
        try:
            return int(texts[0]) if kind == "integer" else _number(texts[0])
        except ValueError:
            raise ValueError(f"{cut(name, 100)} takes a number.") from None
    return texts[0]


def _number(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(text)
    return number
