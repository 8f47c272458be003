from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.errors import UsageError
from agentmon.runners.environment import STANDARD_NAMES, looks_secret, select_environment

NAMES = st.text(string.ascii_uppercase + string.digits + "_", min_size=1, max_size=12) | st.sampled_from(
    ["HOME", "PATH", "LC_ALL", "TMUX", "TMUX_PANE", "XDG_TOKEN", "HOMEBREW_GITHUB_API_TOKEN", "XDG_DATA_HOME"],
)
ENVIRONS = st.dictionaries(NAMES, st.text(max_size=5), max_size=20)


@given(environ=ENVIRONS, prefixes=st.lists(NAMES.map(lambda name: f"{name}X*"), max_size=3))
def test_nothing_appears_that_was_not_set_and_tmux_and_secrets_never_pass_by_prefix(
    environ: dict[str, str], prefixes: list[str]
) -> None:
    chosen = select_environment(environ, allowlist=[*prefixes, "*"])

    assert chosen.items() <= environ.items()
    assert not {"TMUX", "TMUX_PANE"} & set(chosen)
    assert not [name for name in chosen if looks_secret(name) and name not in STANDARD_NAMES]


@given(environ=ENVIRONS)
def test_every_standard_name_passes_and_no_other(environ: dict[str, str]) -> None:
    exact = {name for name in STANDARD_NAMES if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in STANDARD_NAMES if name.endswith("*"))

    chosen = select_environment(environ)

    assert set(chosen) == {
        name for name in environ if name in exact or (name.startswith(prefixes) and not looks_secret(name))
    }


@given(environ=ENVIRONS, overrides=ENVIRONS)
def test_overrides_win_and_the_names_come_sorted(environ: dict[str, str], overrides: dict[str, str]) -> None:
    overrides = {name: value for name, value in overrides.items() if not name.startswith("TMUX") and "\0" not in value}

    chosen = select_environment(environ, overrides=overrides)

    assert overrides.items() <= chosen.items()
    assert list(chosen) == sorted(chosen)


def test_a_secret_passes_when_it_is_named_in_full() -> None:
    environ = {"GITHUB_TOKEN": "a", "ANTHROPIC_API_KEY": "b", "ANTHROPIC_BASE_URL": "c", "OTHER": "d"}

    by_prefix = select_environment(environ, allowlist=["ANTHROPIC_*"])
    by_name = select_environment(environ, allowlist=["ANTHROPIC_API_KEY"], passed=["GITHUB_TOKEN"])

    assert by_prefix == {"ANTHROPIC_BASE_URL": "c"}
    assert by_name == {"ANTHROPIC_API_KEY": "b", "GITHUB_TOKEN": "a"}


@pytest.mark.parametrize(
    "name",
    [
        *("API_KEY", "KEY", "AWS_SECRET_ACCESS_KEY", "npm_config__authToken", "MYSQL_PWD", "DB_PASS", "PGPASSWORD"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "SSH_PRIVATE", "OPENAI_APIKEY", "GITLAB_PAT", "session_cookie", "X_AUTH"),
        *("MAX_TOKEN", "NPM_TOKENS", "MAX_TOKENS_SECRET"),
    ],
)
def test_names_of_secrets_are_told_by_their_words(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "KEYBOARD",
        "MONKEY",
        "PWDX",
        "COMPASS",
        "XDG_SESSION_ID",
        "CARGO_TARGET_DIR",
        "X_MAX_OUTPUT_TOKENS",
        "MAX_TOKENS",
    ],
)
def test_names_that_only_resemble_those_of_secrets_are_not_taken_for_them(name: str) -> None:
    assert not looks_secret(name)


def test_a_passed_name_that_is_not_set_is_named_in_the_error() -> None:
    with pytest.raises(UsageError, match="DEPLOY_TOKEN is to be passed on, and it is not set") as caught:
        select_environment({"PATH": "/bin"}, passed=["DEPLOY_TOKEN"])

    assert caught.value.hint == "set it: export DEPLOY_TOKEN=…"


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
def test_what_cannot_be_a_name_is_refused_everywhere(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a variable"):
        select_environment({}, passed=[name])
    with pytest.raises(UsageError, match="cannot be the name of a variable"):
        select_environment({}, overrides={name: "value"})
    if name:
        with pytest.raises(UsageError, match="cannot be the name of a variable"):
            select_environment({}, allowlist=[name])


@pytest.mark.parametrize("name", ["TMUX", "TMUX_PANE", "TMUX_TMPDIR"])
def test_a_persons_own_tmux_cannot_be_passed_on(name: str) -> None:
    with pytest.raises(UsageError, match="belongs to your own tmux"):
        select_environment({name: "x"}, passed=[name])
    with pytest.raises(UsageError, match="belongs to your own tmux"):
        select_environment({}, overrides={name: "x"})


def test_a_value_with_a_nul_is_refused() -> None:
    with pytest.raises(UsageError, match="the value of the variable A has a NUL"):
        select_environment({}, overrides={"A": "x\0y"})


def test_a_star_in_the_middle_of_an_allowed_name_is_refused() -> None:
    with pytest.raises(UsageError, match="stands at the end only"):
        select_environment({}, allowlist=["A*B"])
