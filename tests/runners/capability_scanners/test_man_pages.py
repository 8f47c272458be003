from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agentmon.runners.capability_scanners.man import read_man, scan_man
from agentmon.runners.capability_scanners.program_place import ProgramPlace, find_place
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ScannedOption, ValueJoin, ValueKind


def option(capability: ScannedCapability, name: str) -> ScannedOption:
    return next(one for one in capability.options if name in one.names)


def test_pages_of_the_man_macros_are_read() -> None:
    text = r"""
.TH TOOL 1
.SH NAME
tool \- do a thing
.SH OPTIONS
.TP
\fB\-a\fR, \fB\-\-all\fR
do not ignore it. Never.
.TP
\fB\-\-color\fR[=\fI\,WHEN\/\fR]
when to colour
.TP
.BI \-e " PATTERNS" "\fR,\fP \-\^\-regexp=" PATTERNS
use
.I PATTERNS
as they are
.IP "\fB\-\-indent n\fR" 4
blanks
.IP "\[ci]" 4
\fB\-\-seq\fR / \fB\-q\fR:
.IP
in a row
.SH EXAMPLES
.TP
\fB\-\-not\-mine\fR
of an example
"""

    (found,) = read_man(text, "tool")

    assert found.description == "do a thing"
    assert option(found, "-a").names == ("-a", "--all")
    assert option(found, "-a").description == "do not ignore it"
    assert option(found, "--color").is_value_optional
    assert (option(found, "-e").names, option(found, "-e").value_name) == (("-e", "--regexp"), "PATTERNS")
    assert option(found, "-e").description == "use PATTERNS as they are"
    assert option(found, "--indent").kind is ValueKind.INTEGER
    assert option(found, "--seq").names == ("--seq", "-q")
    assert len(found.options) == 5


def test_pages_that_docbook_and_mdoc_make_are_read_with_their_commands() -> None:
    docbook = r"""
.SH "NAME"
git \- the content tracker
.SH "OPTIONS"
.PP
\-\-no\-decorate, \-\-decorate[=short|full]
.RS 4
Print out the names\&.
.if n \{\
.RS 4
.\}
.nf
 \-\-in\-code
.fi
.if n \{\
.RE
.\}
.RE
.PP
\-\-[no\-]mailmap
.RS 4
Use it\&.
.RE
.SH "GIT COMMANDS"
.PP
\fBgit-add\fR(1)
.RS 4
Add file contents\&. And more\&.
.RE
"""
    mdoc = """
.Dd January 1, 2024
.Sh NAME
.Nm ssh
.Nd OpenSSH remote login client
.Sh DESCRIPTION
.Bl -tag -width Ds
.It Fl 4
Forces IPv4.
.It Fl B Ar bind_interface , Fl -bind Ns = Ns Ar name
Binds.
.El
"""

    git = {" ".join(one.subcommand): one for one in read_man(docbook, "git")}
    (ssh,) = read_man(mdoc, "ssh")

    assert option(git[""], "--decorate").choices == ("short", "full")
    assert option(git[""], "--no-decorate").kind is ValueKind.BOOLEAN
    assert option(git[""], "--no-mailmap").names == ("--no-mailmap",)
    assert option(git[""], "--mailmap").description == "Use it"
    assert all("--in-code" not in one.names for one in git[""].options)
    assert (git["add"].description, git["add"].is_learned) == ("Add file contents", False)
    assert ssh.description == "OpenSSH remote login client"
    assert (option(ssh, "-B").join, option(ssh, "-B").value_name) == (ValueJoin.WORD, "bind_interface")
    assert [one.names for one in ssh.options] == [("-4",), ("-B", "--bind")]


def place_with(folder: Path) -> ProgramPlace:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin/tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / "share/man/man1").mkdir(parents=True)
    return find_place("tool", {"PATH": str(folder / "bin"), "HOME": str(folder)})


def test_a_page_is_found_packed_by_a_link_and_for_a_subcommand(tmp_path: Path) -> None:
    place = place_with(tmp_path / "opt")
    pages = tmp_path / "opt/share/man/man1"
    (pages / "real.1.gz").write_bytes(gzip.compress(b".SH OPTIONS\n.TP\n\\-x\nof all\n"))
    (pages / "tool.1").write_text(".so man1/real.1\n")
    (pages / "tool-add.1ssl.gz").write_bytes(gzip.compress(b".SH OPTIONS\n.TP\n\\-y\nof add\n"))

    (whole,) = scan_man(place)
    (add,) = scan_man(place, subcommand=("add",))

    assert option(whole, "-x").description == "of all"
    assert (add.key, add.subcommand, option(add, "-y").description) == ("add", ("add",), "of add")
    assert scan_man(place, subcommand=("none",)) == ()


def test_a_page_that_leads_out_of_its_folder_or_is_damaged_tells_nothing(tmp_path: Path) -> None:
    place = place_with(tmp_path / "opt")
    pages = tmp_path / "opt/share/man/man1"
    (tmp_path / "secret.1").write_text(".SH OPTIONS\n.TP\n\\-x\nnot to be read\n")
    (pages / "tool.1").write_text(".so ../../../secret.1\n")
    (pages / "tool-cut.1.gz").write_bytes(gzip.compress(b"x" * 10_000)[:40])
    (pages / "tool-round.1").write_text(".so man1/tool-round.1\n")

    assert scan_man(place) == ()
    assert scan_man(place, subcommand=("cut",)) == ()
    assert scan_man(place, subcommand=("round",)) == ()


@pytest.mark.skipif(not Path("/usr/share/man/man1/tar.1.gz").exists(), reason="no manual pages here")
def test_the_pages_of_this_machine_are_read() -> None:
    (tar,) = scan_man(find_place("tar", {"PATH": "/usr/bin:/bin", "HOME": "/"}))

    assert option(tar, "--file").names == ("-f", "--file")
    assert option(tar, "--file").value_name == "ARCHIVE"
    assert len(tar.options) > 120
