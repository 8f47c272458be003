"""``agentmon doctor``: whether everything that agentmon needs is there and works."""

import typer

from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document

_GLYPHS = {"ok": "✓", "warn": "!", "fail": "✗"}


def doctor(as_json: JsonOption = False) -> None:
    """Check that everything needed is there and works.

    The exit code is 1 when something fails.

    Examples:
      agentmon doctor
      agentmon doctor --json
    """
    findings = with_services(lambda services: services.doctor.check())
    if as_json:
        say_document(json_form(findings))
    else:
        for finding in findings:
            say(f"{_GLYPHS[finding.level]} {finding.level:<4}  {finding.name}: {finding.text}")
            if finding.hint and finding.level != "ok":
                say(f"        {finding.hint}")
    if any(finding.level == "fail" for finding in findings):
        raise typer.Exit(1)
