from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.runners.capability_scanners.fig import read_fig, scan_fig
from agentmon.runners.capability_scanners.js_literals import UNKNOWN, JsModule
from agentmon.runners.capability_scanners.program_place import find_place
from agentmon.runners.capability_scanners.scanned import ValueJoin, ValueKind

if TYPE_CHECKING:
    from pathlib import Path

SPEC = r"""
import{x as y}from"z";var f=t=>t.split(/[}\]"]/g).map(n=>({name:`${n} {`})),c=[{name:["-v","--verbose"],
isPersistent:!0}],
g={name:"add",description:"Add\u0020a "+"thing",options:[{name:"--depth",args:{name:"n",isOptional:!0,
suggestions:["1",{name:"2"}],generators:f}},...c,{name:["-m"],isRepeatable:true,args:[{name:"text"},{name:"more"}]}],
args:[{name:"path",isVariadic:!0,isOptional:!0},{name:"last"}],postProcess(o){return{name:"}"}}},
h={name:"tool",description:'It is "one"',subcommands:[g,{name:["far","f"],loadSpec:"tool/far"},{name:f("no")}],
options:c,generateSpec:async(a,b)=>{return{name:a?.b??"x"}}},k=h;export{k as default,f as other};
"""


def test_a_description_is_read_without_running_what_it_works_out() -> None:
    found = {" ".join(one.subcommand): one for one in read_fig(SPEC, "tool")}
    options = {one.key: one for one in found["add"].options}

    assert list(found) == ["", "add", "far"]
    assert found[""].description == 'It is "one"'
    assert found["add"].description == "Add a thing"
    assert options["depth"].is_value_optional
    assert options["depth"].description == "such as 1, 2"
    assert options["depth"].join is ValueJoin.EQUALS
    assert (options["verbose"].names, options["verbose"].kind) == (("-v", "--verbose"), ValueKind.BOOLEAN)
    assert (options["m"].is_repeated, options["m"].join) == (True, ValueJoin.WORD)
    assert [(one.key, one.is_repeated, one.is_required) for one in found["add"].options if one.is_positional] == [
        ("path", True, False),
        ("last", False, True),
    ]
    assert not found["far"].is_learned


def test_a_part_in_a_file_of_its_own_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    build = tmp_path / "node/lib/node_modules/@withfig/autocomplete/build"
    (build / "tool").mkdir(parents=True)
    (build / "tool.js").write_text(SPEC)
    (build / "tool/far.js").write_text('export default {name:"far",options:[{name:"--deep"}]}')
    (tmp_path / "node/bin").mkdir()
    place = find_place("tool", {"PATH": str(tmp_path / "node/bin"), "HOME": str(tmp_path)})

    far = next(one for one in scan_fig(place, subcommand=("far",)) if one.subcommand == ("far",))

    assert [one.names for one in far.options] == [("--deep",), ("-v", "--verbose")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "export{a as default};",
        "var a=a;export{a as default};",
        "export default x(){",
        "export default [)",
        "var a={b:[c,{d:]}};export{a as default}",
        "export default " + "[" * 5000,
        "var a=`${`${",
    ],
)
def test_a_module_that_is_none_ends_and_tells_nothing(text: str) -> None:
    assert read_fig(text, "tool") == ()


def test_what_only_a_run_could_tell_is_unknown() -> None:
    module = JsModule('var a=1,b=a+1,c=f(a);export default {a,b,c,d:"x",e:void 0,g:a?1:2,h:`t`}')

    assert module.default_export() == {
        "a": 1.0,
        "b": UNKNOWN,
        "c": UNKNOWN,
        "d": "x",
        "e": None,
        "g": UNKNOWN,
        "h": "t",
    }
