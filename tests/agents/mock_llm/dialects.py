"""The four APIs that the agents speak: each request as a conversation, each step as an answer of that API.

An answer is a series of ``(event name or None, data)``; a float in it is a pause in seconds between two pieces of text.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.agents.mock_llm.scenarios import Json, Turn, calls_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Part = tuple[str | None, Any]
_numbers = itertools.count(1)


class Dialect(NamedTuple):
    """One API."""

    read: Callable[[Json], Iterator[Turn]]
    answer: Callable[[Json, Mapping[str, Json], Json, Json], Iterator[Part | float]]
    """Takes the step, the offered tools, the request and the tokens to report."""


def find_tools(body: Json) -> dict[str, Json]:
    """Return every tool that a request offers by name, whatever the API wraps it in."""
    waiting = list(body.get("tools") or [])
    found: dict[str, Json] = {}
    for item in body["input"] if isinstance(body.get("input"), list) else []:
        if item.get("type") == "additional_tools":
            waiting += item["tools"]
    while waiting:
        tool = waiting.pop(0)
        inner = tool.get("functionDeclarations") or (tool.get("tools") if tool.get("type") == "namespace" else None)
        if inner:
            waiting += [{"namespace": tool.get("name"), **part} for part in inner]
            continue
        name = tool.get("name") or (tool.get("function") or {}).get("name")
        if name:
            found.setdefault(name, tool)
    return found


def find_schema(body: Json) -> Json | None:
    """Return the JSON schema that the answer must follow, if any."""
    config = body.get("generationConfig") or {}
    form = (
        (body.get("text") or {}).get("format")
        or body.get("response_format")
        or (body.get("output_config") or {}).get("format")
        or {}
    )
    found: Json | None = (
        config.get("responseJsonSchema")
        or config.get("responseSchema")
        or form.get("schema")
        or (form.get("json_schema") or {}).get("schema")
    )
    return found


def error_body(api: str, status: int, text: str) -> Json:
    """Return the body of an error as this API words it."""
    name = _ERROR_NAMES.get(status, "api_error")
    if api == "gemini":
        return {"error": {"code": status, "message": text, "status": _GOOGLE_NAMES.get(status, "UNKNOWN")}}
    if api == "anthropic":
        return {"type": "error", "error": {"type": name, "message": text}, "request_id": _new_id("req_mock_")}
    return {"error": {"message": text, "type": name, "param": None, "code": name}}


_ERROR_NAMES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GOOGLE_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}


def _new_id(prefix: str) -> str:
    return f"{prefix}{next(_numbers):06d}"


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or [] if isinstance(part, dict))


def _pieces(step: Json) -> Iterator[str | float]:
    for piece in words_of(step["text"]) if step.get("text") else []:
        yield piece
        yield float(step.get("chunk_delay", 0))


# Anthropic Messages

_EMPTY_BLOCKS: dict[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def _read_anthropic(body: Json) -> Iterator[Turn]:
    for message in body.get("messages", []):
        content = message["content"]
        is_result = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
        if message["role"] == "user" and is_result:
            yield "tool", ""
        yield message["role"], _text_of(content)


def _answer_anthropic(step: Json, tools: Mapping[str, Json], body: Json, tokens: Json) -> Iterator[Part | float]:
    blocks: list[Json] = []
    if step.get("thinking"):
        blocks.append({"type": "thinking", "thinking": step["thinking"], "signature": "bW9jaw=="})
    if step.get("text"):
        blocks.append({"type": "text", "text": step["text"]})
    blocks += [
        {"type": "tool_use", "id": _new_id("toolu_mock_"), "name": name, "input": arguments}
        for name, arguments in calls_of(step, tools)
    ]
    reason = "tool_use" if step.get("tools") else "end_turn"
    usage = {
        "input_tokens": tokens["input"],
        "cache_creation_input_tokens": tokens["cache_write"],
        "cache_read_input_tokens": tokens["cache_read"],
        "output_tokens": 1,
        "service_tier": "standard",
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens["cache_write"],
            "ephemeral_1h_input_tokens": 0,
        },
    }
    final_usage = usage | {"output_tokens": tokens["output"]}
    message: Json = {
        "id": _new_id("msg_mock_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    if not body.get("stream"):
        yield None, message | {"content": blocks, "stop_reason": reason, "usage": final_usage}
        return

    def event(kind: str, **fields: Any) -> Part:
        return kind, {"type": kind, **fields}

    yield event("message_start", message=message)
    for index, block in enumerate(blocks):
        kind = block["type"]
        empty = _EMPTY_BLOCKS[kind]
        yield event("content_block_start", index=index, content_block=block | empty)
        if kind == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield event("content_block_delta", index=index, delta=delta)
        else:
            for piece in words_of(block[kind]):
                yield event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
                yield float(step.get("chunk_delay", 0))
        if kind == "thinking":
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=final_usage)
    yield event("message_stop")


# OpenAI Responses


def _read_responses(body: Json) -> Iterator[Turn]:
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "message":
            if item.get("role") in {"user", "assistant"}:
                yield item["role"], _text_of(item.get("content"))
        elif "_output" in kind:
            yield "tool", ""
        elif kind.endswith("_call"):
            yield "assistant", ""


def _answer_responses(step: Json, tools: Mapping[str, Json], body: Json, tokens: Json) -> Iterator[Part | float]:
    sequence = itertools.count()
    base: Json = {
        "id": _new_id("resp_mock_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": body.get("model"),
        "output": [],
        "usage": None,
        "error": None,
    }

    def event(kind: str, **fields: Any) -> Part:
        return kind, {"type": kind, "sequence_number": next(sequence), **fields}

    output = list(_responses_output(step, tools))
    if body.get("stream"):
        yield event("response.created", response=base)
        for index, item in enumerate(output):
            begun = item | {"content": []} if "content" in item else item
            yield event("response.output_item.added", output_index=index, item=begun)
            place = {"item_id": item["id"], "output_index": index}
            if item["type"] == "message":
                for piece in _pieces(step):
                    if isinstance(piece, float):
                        yield piece
                    else:
                        yield event("response.output_text.delta", **place, content_index=0, delta=piece)
                yield event("response.output_text.done", **place, content_index=0, text=step["text"])
            elif item["type"] == "reasoning":
                part = {"type": "summary_text", "text": ""}
                yield event("response.reasoning_summary_part.added", **place, summary_index=0, part=part)
                for piece in words_of(step["thinking"]):
                    yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
            yield event("response.output_item.done", output_index=index, item=item)
    total = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    usage = {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": tokens["cache_read"]},
        "output_tokens": tokens["output"],
        "output_tokens_details": {"reasoning_tokens": tokens["reasoning"]},
        "total_tokens": total + tokens["output"],
    }
    done = base | {"status": "completed", "output": output, "usage": usage}
    yield event("response.completed", response=done) if body.get("stream") else (None, done)


def _responses_output(step: Json, tools: Mapping[str, Json]) -> Iterator[Json]:
    if step.get("thinking"):
        summary = [{"type": "summary_text", "text": step["thinking"]}]
        yield {"type": "reasoning", "id": _new_id("rs_mock_"), "encrypted_content": None, "summary": summary}
    if step.get("text"):
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        yield {
            "type": "message",
            "id": _new_id("msg_mock_"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for name, arguments in calls_of(step, tools):
        call: Json = {"call_id": _new_id("call_mock_"), "name": name, "status": "completed"}
        if tools.get(name, {}).get("namespace"):
            call["namespace"] = tools[name]["namespace"]
        if tools.get(name, {}).get("type") == "custom":
            given = arguments if isinstance(arguments, str) else arguments.get("input", "")
            yield call | {"type": "custom_tool_call", "id": _new_id("ctc_mock_"), "input": given}
        else:
            given = {"input": arguments} if isinstance(arguments, str) else arguments
            yield call | {"type": "function_call", "id": _new_id("fc_mock_"), "arguments": json.dumps(given)}


# OpenAI Chat Completions


def _read_chat(body: Json) -> Iterator[Turn]:
    for message in body.get("messages", []):
        if message["role"] != "system":
            yield message["role"], _text_of(message.get("content"))


def _answer_chat(step: Json, tools: Mapping[str, Json], body: Json, tokens: Json) -> Iterator[Part | float]:
    total = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    calls = [
        {
            "index": index,
            "id": _new_id("call_mock_"),
            "type": "function",
            "function": {
                "name": name,
                "arguments": json.dumps({"input": arguments} if isinstance(arguments, str) else arguments),
            },
        }
        for index, (name, arguments) in enumerate(calls_of(step, tools))
    ]
    usage = {
        "prompt_tokens": total,
        "completion_tokens": tokens["output"],
        "total_tokens": total + tokens["output"],
        "prompt_tokens_details": {"cached_tokens": tokens["cache_read"]},
        "completion_tokens_details": {"reasoning_tokens": tokens["reasoning"]},
    }
    reason = "tool_calls" if calls else "stop"
    base = {"id": _new_id("chatcmpl-mock-"), "created": int(time.time()), "model": body.get("model")}
    if not body.get("stream"):
        message = {"role": "assistant", "content": step.get("text")} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": reason}
        yield None, base | {"object": "chat.completion", "choices": [choice], "usage": usage}
        return

    def chunk(delta: Json, finish_reason: str | None = None) -> Part:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return None, base | {"object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(step):
        yield piece if isinstance(piece, float) else chunk({"content": piece})
    if calls:
        yield chunk({"tool_calls": calls})
    yield chunk({}, reason)
    yield None, base | {"object": "chat.completion.chunk", "choices": [], "usage": usage}
    yield None, "[DONE]"


# Gemini


def _read_gemini(body: Json) -> Iterator[Turn]:
    for message in body.get("contents", []):
        yield ("assistant" if message.get("role") == "model" else "user"), _text_of(message.get("parts"))


def _answer_gemini(step: Json, tools: Mapping[str, Json], body: Json, tokens: Json) -> Iterator[Part | float]:
    total = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    usage = {
        "promptTokenCount": total,
        "cachedContentTokenCount": tokens["cache_read"],
        "candidatesTokenCount": tokens["output"],
        "thoughtsTokenCount": tokens["reasoning"],
        "totalTokenCount": total + tokens["output"] + tokens["reasoning"],
    }
    response_id = _new_id("gem_mock_")

    def chunk(parts: list[Json], *, is_last: bool = False) -> Part:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        document: Json = {"modelVersion": body["_model"], "responseId": response_id}
        if is_last:
            candidate["finishReason"] = "STOP"
            document["usageMetadata"] = usage
        return None, {"candidates": [candidate], **document}

    thoughts: list[Json] = [{"text": step["thinking"], "thought": True}] if step.get("thinking") else []
    calls: list[Json] = [{"functionCall": {"name": name, "args": given}} for name, given in calls_of(step, tools)]
    if not body.get("stream"):
        yield chunk([*thoughts, *([{"text": step["text"]}] if step.get("text") else []), *calls], is_last=True)
        return
    if thoughts:
        yield chunk(thoughts)
    for piece in _pieces(step):
        yield piece if isinstance(piece, float) else chunk([{"text": piece}])
    yield chunk(calls or [{"text": ""}], is_last=True)


DIALECTS = {
    "anthropic": Dialect(_read_anthropic, _answer_anthropic),
    "responses": Dialect(_read_responses, _answer_responses),
    "chat": Dialect(_read_chat, _answer_chat),
    "gemini": Dialect(_read_gemini, _answer_gemini),
}
