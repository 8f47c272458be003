# ruff: noqa: E501 - the wordings stand as the programs print them, each in one line
from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.runners.refusals import find_refusal
from agentmon.runners.refusals.rules import load_rules

if TYPE_CHECKING:
    from pathlib import Path

USAGE, RATE, LOGIN = RefusalKind.USAGE_LIMIT, RefusalKind.RATE_LIMIT, RefusalKind.BAD_LOGIN
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 28, 13, 0, tzinfo=UTC)
AGENTS = {"claude", "codex", "gemini", "opencode", "aider", "qwen", "goose", "crush", "pi"}


def refusal_in(
    output: str | bytes,
    program: str,
    *,
    exit_code: int | None = 1,
    now: datetime = NOW,
    is_agent: bool | None = None,
) -> Refusal | None:
    return find_refusal(
        output.encode() if isinstance(output, str) else output,
        program=program,
        is_agent=program in AGENTS if is_agent is None else is_agent,
        exit_code=exit_code,
        now=now,
        zone=BERLIN,
    )


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type] # the parts are year, month, day, hour and so on


def later(**amount: float) -> datetime:
    return NOW + timedelta(**amount)


def claude_result(text: str, **facts: object) -> str:
    record = {"duration_api_ms": 0, "is_error": True, "subtype": "success", "result": text, "type": "result", **facts}
    return json.dumps(record, ensure_ascii=False)


def claude_talk(text: str) -> str:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "assistant", "message": message})


CODEX_HIT = "You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or "
GEMINI_FAILED = "Error when talking to Gemini API Full report available at: /tmp/report.json "
STACK = "\n".join(f"    at async step{number} (file:///gemini/bundle/chunk.js:{number}:24)" for number in range(11))

TRUE_WORDINGS = [
    # Claude Code
    ("claude", "Claude AI usage limit reached|1795880000", USAGE, datetime.fromtimestamp(1795880000, UTC)),
    (
        "claude",
        "Claude usage limit reached. Your limit will reset at 3pm (Europe/Berlin).",
        USAGE,
        utc(2026, 11, 28, 14),
    ),
    ("claude", "You've hit your limit · resets 3pm (Europe/Berlin)", USAGE, utc(2026, 11, 28, 14)),
    ("claude", "You’ve hit your session limit · resets 7:20am (Europe/Paris)", USAGE, utc(2026, 11, 29, 6, 20)),
    ("claude", "You've hit your weekly limit · resets Dec 1, 2am (UTC)", USAGE, utc(2026, 12, 1, 2)),
    ("claude", "You've hit your weekly limit · resets Dec 1 at 7pm", USAGE, utc(2026, 12, 1, 18)),
    ("claude", "You've reached your Fable limit.", USAGE, None),
    (
        "claude",
        "  ⎿  5-hour limit reached ∙ resets 3pm\n     /upgrade to increase your usage limit.",
        USAGE,
        utc(2026, 11, 28, 14),
    ),
    ("claude", "Weekly limit reached ∙ resets Dec 9 at 10am", USAGE, utc(2026, 12, 9, 9)),
    ("claude", "Session limit reached ∙ resets 11:00 PM", USAGE, utc(2026, 11, 28, 22)),
    ("claude", "Opus weekly limit reached ∙ resets Dec 9, 5pm", USAGE, utc(2026, 12, 9, 16)),
    (
        "claude",
        claude_result("You've hit your session limit · resets 3:30pm (UTC)", api_error_status=429),
        USAGE,
        utc(2026, 11, 28, 15, 30),
    ),
    (
        "claude",
        claude_result("Claude AI usage limit reached|1795880000"),
        USAGE,
        datetime.fromtimestamp(1795880000, UTC),
    ),
    (
        "claude",
        json.dumps(
            {
                "type": "rate_limit_event",
                "rate_limit_info": {"status": "rejected", "resetsAt": 1795880000, "rateLimitType": "five_hour"},
            }
        ),
        USAGE,
        datetime.fromtimestamp(1795880000, UTC),
    ),
    ("claude", "Credit balance is too low", USAGE, None),
    ("claude", "Not logged in · Please run /login", LOGIN, None),
    ("claude", claude_result("Not logged in · Please run /login"), LOGIN, None),
    ("claude", "Invalid API key · Fix external API key", LOGIN, None),
    ("claude", "Invalid API key · Please run /login", LOGIN, None),
    (
        "claude",
        'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}} · Please run /login',
        LOGIN,
        None,
    ),
    (
        "claude",
        "OAuth token has expired. Please obtain a new token or refresh your existing token.\nPlease run /login",
        LOGIN,
        None,
    ),
    (
        "claude",
        '{"type":"system","subtype":"api_retry","attempt":7,"error_status":401,"error":"authentication_failed"}',
        LOGIN,
        None,
    ),
    ("claude", claude_result("API Error: Request rejected (429) · mock rate limit", api_error_status=429), RATE, None),
    (
        "claude",
        claude_result("API Error: Repeated 529 Overloaded errors. The API is at capacity", api_error_status=529),
        RATE,
        None,
    ),
    ("claude", 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}', RATE, None),
    ("/usr/local/bin/claude", "You've hit your limit · resets 3pm", USAGE, utc(2026, 11, 28, 14)),
    # Codex
    ("codex", f"ERROR: {CODEX_HIT}try again at 5:36 PM.", USAGE, utc(2026, 11, 28, 16, 36)),
    ("codex", f"■ {CODEX_HIT}try again at Dec 3rd, 2026 12:30 PM.", USAGE, utc(2026, 12, 3, 11, 30)),
    (
        "codex",
        "You've hit your usage limit. Upgrade to Pro (https://openai.com) or try again in 3 days 4 hours 12 minutes.",
        USAGE,
        later(days=3, hours=4, minutes=12),
    ),
    (
        "codex",
        json.dumps({"type": "turn.failed", "error": {"message": f"{CODEX_HIT}try again at 12:16 PM."}}),
        USAGE,
        utc(2026, 11, 29, 11, 16),
    ),
    ("codex", "You've hit your usage limit. Try again later.", USAGE, None),
    ("codex", "You hit your spend cap set by the owner of your workspace.", USAGE, None),
    (
        "codex",
        '{"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1795880000,"resets_in_seconds":13872}}',
        USAGE,
        later(seconds=13872),
    ),
    ("codex", "ERROR: Quota exceeded. Check your plan and billing details.", USAGE, None),
    (
        "codex",
        '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: invalid api key, url: http://localhost/v1"}}',
        LOGIN,
        None,
    ),
    (
        "codex",
        '{"type":"turn.failed","error":{"message":"Missing environment variable: `OPENAI_API_KEY`."}}',
        LOGIN,
        None,
    ),
    (
        "codex",
        "ERROR: Your access token could not be refreshed because your refresh token has expired. Please log out and sign in again.",
        LOGIN,
        None,
    ),
    ("codex", "Not logged in", LOGIN, None),
    (
        "codex",
        '{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}',
        RATE,
        None,
    ),
    (
        "codex",
        "stream error: Rate limit reached for gpt-6 in organization org-x on tokens per min (TPM). Please try again in 12.5s.",
        RATE,
        later(seconds=12.5),
    ),
    # Gemini CLI
    (
        "gemini",
        f"{GEMINI_FAILED}TerminalQuotaError: You have exhausted your capacity on this model. Your quota will reset after 1h49m8s.\n{STACK}",
        USAGE,
        later(hours=1, minutes=49, seconds=8),
    ),
    (
        "gemini",
        f"Attempt 2 failed: You have exhausted your capacity on this model. Your quota will reset after 39s.. Retrying\n{STACK}",
        RATE,
        later(seconds=39),
    ),
    ("gemini", f"{GEMINI_FAILED}RetryableQuotaError: mock rate limit\n{STACK}\n  status: 429\n}}", RATE, None),
    (
        "gemini",
        '{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: You exceeded your current quota, please check your plan. Please retry in 17.2s.]"}}',
        RATE,
        later(seconds=17.2),
    ),
    (
        "gemini",
        '[API Error: [{\n  "error": {\n    "code": 429,\n    "message": "Quota exceeded for quota metric \'Requests\'",\n    "status": "RESOURCE_EXHAUSTED",\n    "details": [\n      {\n        "retryDelay": "53s"\n      }\n',
        RATE,
        later(seconds=53),
    ),
    (
        "gemini",
        '[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"},{"retryDelay":"53s"}]}}]',
        USAGE,
        None,
    ),
    (
        "gemini",
        '{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\\"error\\":{\\"code\\":401,\\"message\\":\\"bad\\",\\"status\\":\\"UNAUTHENTICATED\\"}}]"}}',
        LOGIN,
        None,
    ),
    ("gemini", "API key not valid. Please pass a valid API key.", LOGIN, None),
    # A key that is missing
    (
        "opencode",
        "Error: OpenAI API key is missing. Pass it using the 'apiKey' parameter or the OPENAI_API_KEY environment variable.",
        LOGIN,
        None,
    ),
    (
        "opencode",
        "AI_LoadAPIKeyError: Google Generative AI API key is missing. Pass it using the 'apiKey' parameter or the GOOGLE_GENERATIVE_AI_API_KEY environment variable.",
        LOGIN,
        None,
    ),
    (
        "opencode",
        '{"type":"error","error":{"name":"AI_LoadAPIKeyError","data":{"message":"the key is missing"}}}',
        LOGIN,
        None,
    ),
    ("aider", "Warning: gpt-5 expects these environment variables\n- OPENAI_API_KEY: Not set", LOGIN, None),
    (
        "aider",
        "litellm.AuthenticationError: AuthenticationError: OpenAIException - The api_key client option must be set either by passing api_key to the client or by setting the OPENAI_API_KEY environment variable",
        LOGIN,
        None,
    ),
    (
        "aider",
        "litellm.AuthenticationError: Missing Anthropic API Key - A call is being made to anthropic but no key is set",
        LOGIN,
        None,
    ),
    ("qwen", "OPENAI_API_KEY environment variable not found.", LOGIN, None),
    ("qwen", "The OPENAI_API_KEY environment variable is missing or empty; either provide it", LOGIN, None),
    ("goose", "error: Configuration value not found: OPENAI_API_KEY", LOGIN, None),
    ("goose", "No provider configured. Run 'goose configure' first", LOGIN, None),
    (
        "crush",
        "No providers configured - please run 'crush' to set up a provider interactively.",
        LOGIN,
        None,
    ),
    ("pi", "No API key found for the selected model.", LOGIN, None),
    ("pi", "Error: Please set the ANTHROPIC_API_KEY first", LOGIN, None),
    # opencode
    (
        "opencode",
        '{"type":"error","error":{"name":"APIError","data":{"message":"mock rate limit","statusCode":429,"responseHeaders":{"retry-after":"30"}}}}',
        RATE,
        later(seconds=30),
    ),
    (
        "opencode",
        '{"type":"error","error":{"name":"APIError","data":{"message":"mock invalid api key","statusCode":401}}}',
        LOGIN,
        None,
    ),
    (
        "opencode",
        "Error: Free usage exceeded, subscribe to Go\nretrying in 6h16m - attempt #1",
        USAGE,
        later(hours=6, minutes=16),
    ),
    (
        "opencode",
        "Error: weekly usage limit reached. It will reset in 5 days 10 hours. To continue, enable usage",
        USAGE,
        later(days=5, hours=10),
    ),
    (
        "opencode",
        'Error: 429: {"type":"FreeUsageLimitError","message":"Rate limit exceeded. Please try again later"}',
        RATE,
        None,
    ),
    # other agents, and the libraries they use
    ("aider", "litellm.RateLimitError: OpenAIException - Rate limit reached for gpt-6", RATE, None),
    (
        "aider",
        "litellm.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}",
        LOGIN,
        None,
    ),
    (
        "aider",
        "Usage limit reached for 5 hour. Your limit will reset at 2026-11-29 18:55:29",
        USAGE,
        utc(2026, 11, 29, 17, 55, 29),
    ),
    # any program
    (
        "python",
        "anthropic.RateLimitError: Error code: 429 - {'type': 'error', 'error': {'type': 'rate_limit_error'}}",
        RATE,
        None,
    ),
    ("python", "openai.RateLimitError: Error code: 429 - {'error': {'code': 'insufficient_quota'}}", USAGE, None),
    (
        "python",
        "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided: x'}}",
        LOGIN,
        None,
    ),
    (
        "python",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://api.test/",
        RATE,
        None,
    ),
    ("curl", "curl: (22) The requested URL returned error: 429", RATE, None),
    ("sh", "HTTP/1.1 429 Too Many Requests\nContent-Length: 0\nRetry-After: 30", RATE, later(seconds=30)),
    ("sh", "HTTP/2 429 Too Many Requests\nRetry-After: Sat, 28 Nov 2026 13:05:00 GMT", RATE, None),
    ("sh", "HTTP/2 429 Too Many Requests\nretry-after: 7300", USAGE, later(seconds=7300)),
    ("npm", "npm ERR! code E429\nnpm ERR! 429 Too Many Requests - GET https://registry.test/left-pad", RATE, None),
    ("npm", "npm error code E401\nnpm error Incorrect or missing password.", LOGIN, None),
    ("docker", "Error response from daemon: toomanyrequests: You have reached your pull rate limit.", RATE, None),
    ("sh", "2026-11-28T13:00:00Z ERROR Usage limit reached. Try again in 2h 13m", USAGE, later(hours=2, minutes=13)),
    ("sh", "You've hit your usage limit. Try again at 5:36 PM.", USAGE, utc(2026, 11, 28, 16, 36)),
    ("sh", "Error: daily quota exceeded, resets at 2026-11-29T00:00:00Z", USAGE, utc(2026, 11, 29)),
]


@pytest.mark.parametrize(("program", "output", "kind", "until"), TRUE_WORDINGS)
def test_the_words_of_vendors_are_understood(
    program: str, output: str, kind: RefusalKind, until: datetime | None
) -> None:
    is_agent = program.rsplit("/", 1)[-1] in AGENTS

    refusal = refusal_in(f"working on it\n{output}\n", program, is_agent=is_agent)

    assert refusal is not None
    assert (refusal.kind, refusal.until) == (kind, until)
    assert 0 < len(refusal.text) <= 200
    assert refusal.advice
    assert not refusal.advice.endswith(".")


PYTEST_REPORT = """\
    def test_a_limit_is_told():
>       assert answer.status == 200, "429 Too Many Requests"
E       AssertionError: 429 Too Many Requests
E       assert 429 == 200
tests/test_limits.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_limits.py::test_a_limit_is_told - AssertionError: 429 Too Many Requests
FAILED tests/test_limits.py::test_login - HTTPError: 401 Client Error: Unauthorized
2 failed, 3 passed in 0.12s
"""
DIFF = """\
@@ -1,3 +1,4 @@
-    raise RateLimitError("429 Too Many Requests")
+    raise UsageLimitError("You've hit your limit · resets 3pm")
+You've hit your usage limit. Try again at 5:36 PM.
+Error: 401 Unauthorized
"""
GREP = """\
src/limits.py:12:You've hit your usage limit. Try again at 5:36 PM.
src/limits.py:13:429 Too Many Requests
12:Not logged in · Please run /login
src/limits.py:    429 Too Many Requests
"""
SOURCE = """\
    if status == 429:
        return "429 Too Many Requests"
    # Rate limit exceeded: wait for Retry-After: 30
    raise LoginError("Not logged in · Please run /login")
    "message": "Invalid API key",
"""
GO_TEST = """\
--- FAIL: TestLimit (0.00s)
    client_test.go:12: got 429 Too Many Requests, want 200 OK
    client_test.go:13: 401 Unauthorized
FAIL
exit status 1
"""
MARKDOWN = """\
I added the tests for the limits. The API answers 429 Too Many Requests when the quota is used up.
- You've hit your limit · resets 3pm (Europe/Berlin)
- "Not logged in · Please run /login" is what it prints without a key
429 Too Many Requests is retried after 30 seconds.
Rate limit exceeded errors are now retried.
Not logged in: the page shows the form.
Usage limit reached: the card says so.
Weekly limit reached — it is parked.
Usage limit reached, then the queue waits.
Please run /login is what it asks for.
Too Many Requests: how often they come.
Unauthorized: what the page says.
401 responses now map to unauthorized.
> You've hit your usage limit. Try again at 5:36 PM.
"""
FENCED = "The message is:\n```\nYou've hit your limit · resets 3pm (Europe/Berlin)\nNot logged in · Please run /login\n```\nDone."
TALK = f"{claude_talk(FENCED)}\n{claude_talk(MARKDOWN)}\n{claude_result('', subtype='error_max_turns')}"
TOOL_SAYS = json.dumps(
    {
        "type": "item.completed",
        "item": {"type": "command_execution", "aggregated_output": f"{CODEX_HIT}try again later"},
    }
)


@pytest.mark.parametrize("program", ["pytest", "sh", "claude", "codex", "gemini", "opencode", "aider"])
@pytest.mark.parametrize(
    "output",
    [
        *(PYTEST_REPORT, DIFF, GREP, SOURCE, GO_TEST, MARKDOWN, FENCED, TALK, TOOL_SAYS, "", "\n\n"),
        claude_result("Reached maximum budget ($0.5)", subtype="error_max_budget_usd"),
        '{"type":"result","is_error":false,"result":"You\'ve hit your limit · resets 3pm"}',
        '{"type":"user","message":{"content":[{"type":"tool_result","content":"429 Too Many Requests","is_error":true}]}}',
        '{"type":"tool_result","status":"error","output":"x","error":{"type":"exec","message":"429 Too Many Requests"}}',
        '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795880000}}',
        "You've hit your limit of patience, and it resets 3pm",
        "Compiling rate_limit v0.1.0\nerror[E0429]: `self` imports are only available within a { } list",
        "AssertionError: '429 Too Many Requests' != '200 OK'",
        "test_rate_limit_exceeded (tests.Limits) ... FAIL",
    ],
)
def test_talk_about_limits_is_no_refusal(program: str, output: str) -> None:
    assert refusal_in(output, program) is None


@pytest.mark.parametrize(
    "output",
    [
        "You've hit your usage limit. Try again later.",
        "Usage limit reached. Ask the owner.",
        "Rate limit exceeded",
        "Not logged in",
        '{"error": "Rate limit exceeded"}',
        '{"level":"error","error":{"message":"slow down","code":429}}',
        "429 Too Many Requests" + "\nmore" * 5,
        "Error: 401 Unauthorized" + "\nmore" * 5,
    ],
)
def test_a_program_that_is_no_agent_has_to_say_it_clearly_and_last(output: str) -> None:
    assert refusal_in(output, "sh") is None


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("Not logged in · Please run /login", LOGIN),
        ("You've hit your usage limit. Try again in 3 days 4 hours 12 minutes.", USAGE),
        ("Claude AI usage limit reached|1796000000", USAGE),
    ],
)
def test_a_script_that_calls_an_agent_is_understood_as_the_agent_is(output: str, kind: RefusalKind) -> None:
    told = f"starting\n{output}\n".encode()

    refusal = find_refusal(told, program="sh", is_agent=False, exit_code=1, now=NOW, zone=BERLIN, may_wrap_agent=True)

    assert refusal is not None
    assert refusal.kind is kind


@pytest.mark.parametrize("output", ["1 failed, 3 passed in 0.2s", "assert 'Not logged in' in page", "exit 41"])
def test_a_script_that_fails_for_reasons_of_its_own_was_not_refused(output: str) -> None:
    assert (
        find_refusal(
            output.encode(), program="sh", is_agent=False, exit_code=41, now=NOW, zone=BERLIN, may_wrap_agent=True
        )
        is None
    )


@pytest.mark.parametrize(
    ("exit_code", "output", "kind"),
    [
        (41, "Please set an auth method", LOGIN),
        (41, "something new", LOGIN),
        (173, "the server said no", RATE),
        (145, "the server said no", LOGIN),
        (53, "the server said no", None),
        (1, "something new", None),
    ],
)
def test_exit_codes_of_gemini_tell_where_its_words_do_not(
    exit_code: int, output: str, kind: RefusalKind | None
) -> None:
    refusal = refusal_in(output, "gemini", exit_code=exit_code)

    assert (refusal and refusal.kind) == kind


RETRIED = '{"type":"system","subtype":"api_retry","attempt":1,"error_status":529,"error":"overloaded"}'
RECONNECTED = '{"type":"error","message":"Reconnecting... 1/1 (unexpected status 529 overloaded)"}'


@pytest.mark.parametrize(
    ("program", "retry", "progress"),
    [
        ("claude", RETRIED, claude_talk("It works again.")),
        ("codex", RECONNECTED, '{"type":"item.completed","item":{"type":"agent_message","text":"It works again."}}'),
    ],
)
def test_a_request_that_went_through_at_last_is_no_refusal(program: str, retry: str, progress: str) -> None:
    end = claude_result("", subtype="error_max_turns") if program == "claude" else '{"type":"turn.failed"}'

    assert refusal_in(f"{retry}\n{progress}\n{end}", program) is None
    assert refusal_in(f"{progress}\n{retry}\n{end}", program) is not None


def test_a_used_up_quota_counts_before_a_later_short_limit() -> None:
    output = f"{CODEX_HIT}try again at 5:36 PM.\nexceeded retry limit, last status: 429 Too Many Requests"

    refusal = refusal_in(output, "codex")

    assert refusal is not None
    assert refusal.kind is USAGE


@pytest.mark.parametrize(
    "output",
    [
        b"\x1b[2J\x1b[31m\x1b]0;title\x07You've\x1b[1Chit your limit \xc2\xb7 resets 3pm\x1b[0m\r\n\x1b[?25h",
        b"50%\r75%\rYou've hit your limit \xc2\xb7 resets 3pm\r",
        b"\xff\xfe\x80\x81 broken\n\xe2\x9c\x96 You've hit your limit \xc2\xb7 resets 3pm\n",
        b"x" * 20_000 + b"\nYou've hit your limit \xc2\xb7 resets 3pm",
        b'{"cut": "' + b"y" * 16_384 + b"\"}\nYou've hit your limit \xc2\xb7 resets 3pm",
    ],
)
def test_escapes_carriage_returns_and_broken_bytes_do_no_harm(output: bytes) -> None:
    refusal = refusal_in(output, "claude")

    assert refusal is not None
    assert refusal.until == utc(2026, 11, 28, 14)
    assert "\x1b" not in refusal.text
    assert refusal.text.endswith("You've hit your limit · resets 3pm")


def test_secrets_are_masked_and_long_lines_cut() -> None:
    key = "sk-ant-api03-" + "k" * 40

    refusal = refusal_in(f"API Error: 401 invalid key {key} {'long ' * 100}", "claude")

    assert refusal is not None
    assert key not in refusal.text
    assert len(refusal.text) == 200


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("resets 1795880000", datetime.fromtimestamp(1795880000, UTC)),
        ("resets 1795880000123", datetime.fromtimestamp(1795880000, UTC)),
        ("resets at 2026-11-29T08:30:00Z", utc(2026, 11, 29, 8, 30)),
        ("resets at 2026-11-29T08:30:00.123+02:00", utc(2026, 11, 29, 6, 30)),
        ("resets at 2026-11-29 08:30:00", utc(2026, 11, 29, 7, 30)),
        ("resets on 2026-12-01", utc(2026, 11, 30, 23)),
        ("resets 3pm", utc(2026, 11, 28, 14)),
        ("resets 2pm", utc(2026, 11, 29, 13)),
        ("resets 3:30 PM", utc(2026, 11, 28, 14, 30)),
        ("resets at 3:30 p.m.", utc(2026, 11, 28, 14, 30)),
        ("resets at 15:00", utc(2026, 11, 28, 14)),
        ("resets 12am", utc(2026, 11, 28, 23)),
        ("resets 12pm", utc(2026, 11, 29, 11)),
        ("resets 3pm (America/New_York)", utc(2026, 11, 28, 20)),
        ("resets 5:50pm America/Los_Angeles", utc(2026, 11, 29, 1, 50)),
        ("resets 3pm (America/Argentina/Buenos_Aires)", utc(2026, 11, 28, 18)),
        ("resets 3pm (UTC)", utc(2026, 11, 28, 15)),
        ("resets 3pm UTC", utc(2026, 11, 28, 15)),
        ("resets 3pm (UTC+2)", utc(2026, 11, 29, 13)),
        ("resets 3pm GMT-05:00", utc(2026, 11, 28, 20)),
        ("resets 3pm PST", utc(2026, 11, 28, 23)),
        ("resets 3pm PT", utc(2026, 11, 28, 23)),
        ("resets 3pm (Mars/Base)", utc(2026, 11, 28, 14)),
        ("resets Dec 9 at 10am", utc(2026, 12, 9, 9)),
        ("resets Dec 9, 5pm", utc(2026, 12, 9, 16)),
        ("resets 9 Dec 2026 17:00", utc(2026, 12, 9, 16)),
        ("resets December 9th, 2026 at 3:05 PM", utc(2026, 12, 9, 14, 5)),
        ("resets Jan 2 at 9am", utc(2027, 1, 2, 8)),
        ("resets Dec 9", utc(2026, 12, 8, 23)),
        ("resets tomorrow at 9am", utc(2026, 11, 29, 8)),
        ("resets today at 23:00 UTC", utc(2026, 11, 28, 23)),
        ("resets Monday 9:00", utc(2026, 11, 30, 8)),
        ("resets Saturday at 13:00", utc(2026, 12, 5, 12)),
        ("resets in 2h 13m", later(hours=2, minutes=13)),
        ("resets in 2h13m5s", later(hours=2, minutes=13, seconds=5)),
        ("resets in 3 days 4 hours 12 minutes", later(days=3, hours=4, minutes=12)),
        ("resets in 1 week, 2 days and 3 hours", later(days=9, hours=3)),
        ("resets after 53s", later(seconds=53)),
        ("resets in 500ms", later(milliseconds=500)),
        ("resets in 12.5 seconds", later(seconds=12.5)),
        ("try again at 5:36 PM", utc(2026, 11, 28, 16, 36)),
        # not said, past, unbelievable or not to be read
        ("resets soon", None),
        ("resets 1700000000", None),
        ("resets at 2026-11-28T12:59:59Z", None),
        ("resets Nov 1 at 10am", None),
        ("resets in 41 days", None),
        ("resets 2027-03-01", None),
        ("resets in 0s", None),
        ("resets 25:00", None),
        ("resets 13pm", None),
        ("resets Feb 30 at 10am", None),
        ("resets 9999999999999", None),
        ("resets in 999999999 weeks", None),
        ("resets 3", None),
    ],
)
def test_a_reset_is_read_in_all_usual_forms(said: str, until: datetime | None) -> None:
    refusal = refusal_in(f"You've hit your limit · {said}", "claude")

    assert refusal is not None
    assert refusal.until == until


@pytest.mark.parametrize(
    ("now", "said", "until"),
    [
        (utc(2026, 3, 28, 20), "resets 3am", utc(2026, 3, 29, 1)),
        (utc(2026, 3, 28, 20), "resets 2:30am", utc(2026, 3, 29, 1, 30)),
        (utc(2026, 3, 28, 20), "resets 9am", utc(2026, 3, 29, 7)),
        (utc(2026, 10, 24, 20), "resets 9am", utc(2026, 10, 25, 8)),
        (utc(2026, 10, 24, 20), "resets 2:30am", utc(2026, 10, 25, 0, 30)),
        (utc(2026, 10, 31, 20), "resets 9am (America/New_York)", utc(2026, 11, 1, 14)),
        (utc(2026, 3, 7, 20), "resets 9am (America/New_York)", utc(2026, 3, 8, 13)),
    ],
)
def test_resets_on_days_when_the_clocks_change_are_right(now: datetime, said: str, until: datetime) -> None:
    refusal = refusal_in(f"You've hit your limit · {said}", "claude", now=now)

    assert refusal is not None
    assert refusal.until == until


@given(
    output=st.one_of(
        st.binary(max_size=400),
        st.lists(
            st.sampled_from(
                [text.encode() for _, text, _, _ in TRUE_WORDINGS] + [b"\n", b"\r", b"```\n", b"\xff", b"{", b"}"]
            )
            | st.binary(max_size=8),
            max_size=6,
        ).map(b"".join),
    ),
    program=st.sampled_from(["claude", "codex", "gemini", "opencode", "sh", ""]),
    is_agent=st.booleans(),
    exit_code=st.sampled_from([None, 1, 41, 145, 173]),
)
def test_any_bytes_are_taken(output: bytes, program: str, *, is_agent: bool, exit_code: int | None) -> None:
    refusal = refusal_in(output, program, exit_code=exit_code, is_agent=is_agent)

    if refusal is not None:
        assert len(refusal.text) <= 200
        assert refusal.until is None or NOW < refusal.until <= later(days=40)


@pytest.mark.parametrize("output", [b"[{" * 8000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"A.A." * 4000 + b"Error: x"])
def test_deep_and_long_lines_are_taken_quickly(output: bytes) -> None:
    assert refusal_in(output, "gemini") is None


def test_a_broken_rule_is_named(tmp_path: Path) -> None:
    rules = tmp_path / "broken.rules.toml"
    rules.write_text('[[rule]]\nname = "x"\nkind = "weather"\nprograms = "any"\nlast_lines = 1\nadvice = "y"\n')

    with pytest.raises(UsageError, match=r"broken\.rules\.toml .*weather"):
        load_rules(rules)
