"""The forms by which MCP servers ask a person: a flat JSON schema out, its content back."""

from __future__ import annotations

from agentmon.runners.protocols.adapter import clip
from agentmon.runners.protocols.app_server.values import as_list, as_object, as_text

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
    for name, field in list(as_object(schema.get("properties")).items())[:MAX_FIELDS]:
        described = as_object(field)
        text = as_text(described.get("description")) or as_text(described.get("title")) or name
        text = clip(text, MAX_TEXT_CHARACTERS)
        if text in names:
            text = clip(text, MAX_TEXT_CHARACTERS - 20) + f" ({len(names) + 1})"
        names[text] = name
        choices = [
            {"key": clip(key, MAX_TEXT_CHARACTERS), "label": clip(label, MAX_TEXT_CHARACTERS)}
            for key, label in _choices(described).items()
        ]
        questions.append(
            {
                "question": text,
                "header": clip(as_text(described.get("title")), MAX_TEXT_CHARACTERS),
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
    fields = as_object(schema.get("properties"))
    content: dict[str, object] = {}
    for name, texts in replies.items():
        if texts:
            content[name] = _value(name, as_object(fields.get(name)), texts)
    needed = map(as_text, as_list(schema.get("required"), MAX_FIELDS))
    missing = [name for name in needed if name not in content and name in fields]
    if missing:
        raise ValueError(f"The form needs an answer to {clip(missing[0], 100)}.")
    return content


def _choices(field: dict[str, object]) -> dict[str, str]:
    if field.get("type") == "boolean":
        return {"true": "Yes", "false": "No"}
    source = as_object(field.get("items")) if field.get("type") == "array" else field
    titled = as_list(source.get("oneOf"), MAX_CHOICES) or as_list(source.get("anyOf"), MAX_CHOICES)
    if titled:
        options = map(as_object, titled)
        return {as_text(option.get("const")): as_text(option.get("title")) for option in options}
    keys = [as_text(key) for key in as_list(source.get("enum"), MAX_CHOICES)]
    labels = [as_text(label) for label in as_list(source.get("enumNames"), MAX_CHOICES)]
    return {key: labels[place] if place < len(labels) else key for place, key in enumerate(keys)}


def _value(name: str, field: dict[str, object], texts: list[str]) -> object:
    choices = _choices(field)
    unknown = [text for text in texts if choices and text not in choices]
    if unknown:
        raise ValueError(f"{clip(unknown[0], 100)!r} is not among the choices of {clip(name, 100)}.")
    kind = field.get("type")
    if kind == "array":
        return texts
    if kind == "boolean":
        return texts[0] == "true"
    if kind in ("number", "integer"):
        try:
            return int(texts[0]) if kind == "integer" else _number(texts[0])
        except ValueError:
            raise ValueError(f"{clip(name, 100)} takes a number.") from None
    return texts[0]


def _number(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(text)
    return number
