"""Whether the last message of a turn asks something that holds the work up, or gives up: guesses, and careful ones.

A question holds it up when it is the last thing said, or only followed by words that wait for the answer. Offers of
more, polite closings, and whatever stands in code or quotes do not.
"""

from __future__ import annotations

import re

from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TAIL_CHARACTERS = 4_000
"""How much of the end of a message is looked at."""
MAX_QUESTION_CHARACTERS = 200

_FENCE = re.compile(r"^[ ]{0,3}(?:```|~~~).*?(?:^[ ]{0,3}(?:```|~~~)[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|https?://\S+|^\s*>.*$", re.MULTILINE)
_MARKS = re.compile(r"[*_#]+|^\s*(?:[-•]|\d+[.)])\s+", re.MULTILINE)
_EMOJI = re.compile("[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\u200d\ufe0f]+")
_OPTION = re.compile(r"\s*(?:\||(?:[-*•]|\(?(?:\d{1,2}|[A-Za-z])[.):])\s+\S)")
_SENTENCE = re.compile(r"[^.!?？。！\n]+(?:[.!?？。！]+(?=\s|$|\)|[？。！])|[.!?]+\S*|\n|$)")
_WORD = re.compile(r"\w{2,}")
_POLITE = re.compile(
    r"\b(?:anything|something|any\w*) (?:else|more|other)|\b(?:any|further|other|more) (?:questions|changes|help)\b|"
    r"\bneed (?:any|anything|help|more)\b|\b(?:can|may|could) I (?:help|assist)\b|\bmake sense\b|\bsound good\?|"
    r"\bhow (?:does|do) (?:that|this|it) (?:look|sound)|\bis there anything\b|, right\?\s*$|"
    r"\bsonst noch\b|\bnoch etwas\b|\bautre chose\b|\balgo más\b|\baltro\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^\W*(?:(?:and|or|also|if so|so),? )*(?:would you like|do you want|want|shall I|should I|may I|can I)\b"
    r"(?=.*\b(?:also|next|instead|further|more|as well|too)\b|(?: me)? to (?!proceed|go ahead|continue|start|apply))",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"^\W*(?:please\b|tell me\b|let me know\b|just (?:say|tell)\b|(?:reply|answer|respond|choose|pick)\b|"
    r"(?:confirm|decide)\b|"
    r"I(?:'ll| will|’ll|'m|’m| am)? (?:wait|waiting|hold|need)\b|waiting\b|once you\b|before I\b|then I\b|either\b|"
    r"I(?:'ll| will|’ll) (?:continue|proceed|go on|start|begin|resume)\b.* (?:once|when|as soon as|after)\b|"
    r"sag(?:e|t|en Sie)? mir\b|gib(?: mir)?\b|bitte\b|ich warte\b|dis-moi\b|dime\b|"
    r"(?:I )?recommend\b|I(?:'d| would|’d) (?:recommend|suggest|prefer|lean)\b|my (?:recommendation|preference)\b)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^\W*(?:please (?:confirm|choose|pick|decide|clarify|specify|advise|tell me)\b|"
    r"please let me know (?:which|whether|how|what)\b|"
    r"tell me (?:which|whether|how|what)\b|let me know (?:which|whether|how to)\b|"
    r"(?:I(?:'m|’m| am) )?waiting (?:for|on) your\b|I(?:'ll| will|’ll) wait (?:for|until|till)\b|"
    r"I need (?:your|to know|you to)\b|awaiting your\b|"
    r"please (?:provide|share|send|give|grant|supply|enter|paste)\b(?!.*\b(?:if|any|feedback)\b)|"
    r"I(?:'m|’m| am) (?:blocked|stuck) (?:until|unless|without)\b|"
    r"I (?:can(?:'|’)t|cannot|can not) (?:continue|proceed|go on|start|finish) (?:until|unless|without)\b)",
    re.IGNORECASE,
)
_GIVES_UP = re.compile(
    r"\b(?:cannot|can['’]t|can not|could not|couldn['’]t|unable|not able|won['’]t be able|may not|"
    r"(?:was|were|been|got) (?:denied|rejected|refused|declined|blocked)|permission (?:denied|was|is)|"
    r"without (?:(?:your|the|that|this) )?(?:permission|approval|access)|not (?:allowed|permitted)|"
    r"needs? (?:your )?(?:permission|approval)|(?:have|I['’]ve|I) stopped|I won['’]t|I will not|skipping|understood)\b",
    re.IGNORECASE,
)


def open_question(text: str) -> str:
    """Return the question with which the message ends and that holds the work up, in one line; empty without one."""
    for sentences in _last_parts(text):
        for place in range(len(sentences) - 1, -1, -1):
            sentence = sentences[place]
            if _is_question(sentence):
                return _shown(sentence) if _holds_up(sentence) else ""
            if _REQUEST.match(sentence) and not _POLITE.search(sentence):
                return _shown(next((one for one in sentences[:place][-1:] if _is_question(one)), sentence))
            if not _WAITS.match(sentence):
                return ""
    return ""


def gives_up(text: str) -> bool:
    """Return whether the end of a message says that something is not done, which counts only after a refusal."""
    last = next((" ".join(sentences) for sentences in _last_parts(text) if sentences), "")
    return _GIVES_UP.search(last) is not None


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(")*_! ").endswith(("?", "？"))


def _holds_up(question: str) -> bool:
    return len(_WORD.findall(question)) > 1 and not _POLITE.search(question) and not _OFFER.search(question)


def _last_parts(text: str) -> Iterator[list[str]]:
    """Yield the sentences of each paragraph from the last one up, without lists and tables of what may be chosen."""
    text = _EMOJI.sub("", _QUOTED.sub(" … ", _FENCE.sub("\n\n", text[-TAIL_CHARACTERS:])))
    for paragraph in reversed(re.split(r"\n\s*\n", text)):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        said = [line for line in lines if not _OPTION.match(line)]
        if not said and any("?" in line for line in lines):  # questions in a list are questions
            said = lines
        yield _sentences("\n".join(said))


def _sentences(text: str) -> list[str]:
    found = (one.group().strip() for one in _SENTENCE.finditer(_MARKS.sub("", text)))
    return [one for one in found if _WORD.search(one)]


def _shown(question: str) -> str:
    return cut(" ".join(question.split()), MAX_QUESTION_CHARACTERS)
