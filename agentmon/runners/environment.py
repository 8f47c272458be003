"""The environment of an agent: chosen name by name from that of whoever starts the run, never copied whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.runners.session_marks import is_of_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STANDARD_NAMES: Final = frozenset(
    {
        # Who and where
        *("HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"),
        # Language and time
        *("LANG", "LANGUAGE", "LC_*", "TZ"),
        # Folders of the desktop, and how to reach it; TERM and the size come from the pane instead
        *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_*"),
        *("COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERMINFO_DIRS"),
        # Programs a person prefers
        *("BROWSER", "EDITOR", "LESS", "LESSCHARSET", "MANPATH", "PAGER", "VISUAL"),
        # Keys are used through their agents' sockets, never passed
        *("GNUPGHOME", "SSH_AGENT_PID", "SSH_AUTH_SOCK"),
        # The network: a company's proxy and certificates
        *("ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
        *("all_proxy", "ftp_proxy", "https_proxy", "http_proxy", "no_proxy"),
        *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
        *("REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
        # Version managers and where languages keep their things
        *(
            "ASDF_*",
            "CONDA_*",
            "FNM_*",
            "HOMEBREW_*",
            "MISE_*",
            "NVM_*",
            "PYENV_*",
            "RBENV_*",
            "SDKMAN_*",
            "VIRTUAL_ENV",
        ),
        *("ANDROID_HOME", "BUN_INSTALL", "CARGO_HOME", "DENO_DIR", "DOTNET_ROOT", "GEM_HOME", "GEM_PATH", "GOBIN"),
        *("GOPATH", "GOROOT", "JAVA_HOME", "NIX_PATH", "NIX_PROFILES", "NODE_PATH", "PNPM_HOME", "PYTHONPATH"),
        *("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "VOLTA_HOME", "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"),
        # The host system
        *("WSLENV", "WSL_DISTRO_NAME", "WSL_INTEROP", "__CF_USER_TEXT_ENCODING"),
    },
)
"""What every program gets where it is set; ``*`` ends a prefix."""

_NEVER: Final = frozenset({"TMUX", "TMUX_PANE", "TMUX_TMPDIR"})
"""They name the tmux of the person; a program would act on that one instead of agentmon's."""

_SECRET_PART: Final = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY|PRIVATE|COOKIE", re.IGNORECASE)
_COUNT: Final = re.compile(r"MAX_(?:\w+_)?TOKENS", re.IGNORECASE)
_SECRET_WORDS: Final = frozenset({"KEY", "KEYS", "PASS", "PAT", "PWD", "AUTH", "BEARER", "JWT", "OTP", "PIN"})


def select_environment(
    environ: Mapping[str, str],
    *,
    allowlist: Iterable[str] = (),
    passed: Iterable[str] = (),
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of an agent, sorted by name.

    It has the standard names and those of the allow-list where ``environ`` has them; then the names in ``passed``, all
    of which must be there; then the overrides, which win. A name that looks like one of a secret, or that marks the
    session of an agent (``session_marks``), is never taken by a prefix, only by being named in full. The variables of
    the person's own tmux never pass.

    Raises:
        UsageError: A passed name is not set, or a name or a value cannot be part of an environment.
    """
    patterns = {*STANDARD_NAMES, *(_checked_pattern(pattern) for pattern in allowlist)}
    prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    chosen = {
        name: value
        for name, value in environ.items()
        if name in patterns or (name.startswith(prefixes) and not looks_secret(name) and not is_of_session(name))
    }
    for name in passed:
        _require_name(name)
        if name not in environ:
            raise UsageError(
                f"the variable {name} is to be passed on, and it is not set", hint=f"set it: export {name}=…"
            )
        chosen[name] = environ[name]
    for name, value in (overrides or {}).items():
        _require_name(name)
        if "\0" in value:
            raise UsageError(f"the value of the variable {name} has a NUL character in it")
        chosen[name] = value
    return {name: chosen[name] for name in sorted(chosen) if name and name not in _NEVER}


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a secret, such as ``GITHUB_TOKEN`` or ``MYSQL_PWD``."""
    name = _COUNT.sub("", name)
    return _SECRET_PART.search(name) is not None or not _SECRET_WORDS.isdisjoint(re.split(r"[^A-Z0-9]+", name.upper()))


def _checked_pattern(pattern: str) -> str:
    _require_name(pattern.removesuffix("*") or "*")
    if "*" in pattern[:-1]:
        raise UsageError(f"{pattern} cannot name variables: * stands at the end only")
    return pattern


def _require_name(name: str) -> None:
    if not name or "=" in name or "\0" in name:
        raise UsageError(f"{name!r} cannot be the name of a variable", hint="a name is not empty and has no = in it")
    if name in _NEVER:
        raise UsageError(f"the variable {name} cannot be passed on: it belongs to your own tmux")
