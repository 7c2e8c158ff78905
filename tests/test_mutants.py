"""The mutation tests themselves: their operators, their list, and a few mutants in earnest."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from tools.mutants.catalogue import ROOT, Mutant, mutants
from tools.mutants.edits import Edit
from tools.mutants.javascript_operators import JavaScriptFunction
from tools.mutants.python_operators import PythonFunction
from tools.mutants.runner import NoTests, copies, limits_of, try_mutant

PYTHON = b'''
class Box:
    def holds(self, x, limit=3):
        """Is 1 < 2?"""
        if (x + 1) < limit and not self.empty:
            self.note(x, limit)
        for each in x:
            total = min(-each, 2.5)
        raise ValueError(f"{x + 1} is too much")
'''
JAVASCRIPT = b"""
const twice = (x) => x * 2;
function kept(old, now) {
  // old < now
  if (!old || old.since > now) return "a < b";
  store.drop(old);
  return Math.min(now, 7n);
}
"""


def changes(edits: list[Edit]) -> set[str]:
    return {edit.shown for edit in edits}


def test_operators_on_python() -> None:
    found = PythonFunction(PYTHON, "Box.holds").edits()
    shown = changes(found)
    assert {
        "if (x + 1) [< → <=] limit and not self.empty",
        "if (x + 1) [< → >=] limit and not self.empty",
        "if (x [+ → -] 1) < limit and not self.",
        "if (x + [1 → 2]) < limit and not self.em",
        "if (x + 1) < limit [and → or] not self.empty:",
        "[self.note(x, limit) → pass]",
        "self.note([x, limit → limit, x])",
        "total = [min → max](-each, 2.5)",
        "total = min([-each → (each)], 2.5)",
        "total = min(-each, [2.5 → 5.0])",
        "for each in …: [ends after one step]",
    } <= shown
    assert not any("too much" in each or "Is 1" in each or "limit=3" in each for each in shown)
    for edit in found:
        ast.parse(edit.applied(PYTHON))


def test_operators_on_javascript() -> None:
    assert changes(JavaScriptFunction(JAVASCRIPT, "twice").edits()) == {
        "const twice = (x) => x [* → +] 2;",
        "const twice = (x) => x * [2 → 3];",
    }
    shown = changes(JavaScriptFunction(JAVASCRIPT, "kept").edits())
    assert {
        'if (!old || old.since [> → >=] now) return "a < b";',
        "if (!old [|| → &&] old.since > now) return ",
        "if ([! → ]old || old.since > now) r",
        "[store.drop(old); → ;]",
        "return [Math.min → Math.max](now, 7n);",
        "return Math.min(now, [7n → 8n]);",
    } <= shown
    assert not any("old < now" in each or "a [<" in each for each in shown)


def test_the_list_is_complete() -> None:
    found = mutants()
    assert len(found) > 150 and len({mutant.name for mutant in found}) == len(found)
    assert len({mutant.area for mutant in found}) > 6
    for test in {test for mutant in found for test in mutant.tests}:
        assert not test.startswith("tests/") or (ROOT / test.partition("::")[0]).exists(), test


def test_a_place_that_vanished_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mutants.toml"
    file.write_text(
        """
        seed = 1
        [[area]]
        name = "x"
        [[area.part]]
        file = "src/deniable/client/files.py"
        tests = []
        draw = { no_such_function = 1 }
        write = [["locked", "no such code", "pass"]]
        [[equivalent]]
        mutant = "no such mutant"
        reason = "there is none"
        """
    )
    with pytest.raises(LookupError) as caught:
        mutants(file)
    (message,) = caught.value.args
    for name in ("no function no_such_function", "no 'no such code' in locked", "no such mutant"):
        assert name in message


SAMPLE = (
    "client/files.py, write_private: written: [os.fsync(file.fileno()) → pass]",
    "client/files.py, replace_private: written: [sync_folder(path.parent) → pass]",
    "client/outbox.py, Outbox._transaction: written: "
    'db.execute("PRAGMA [synchronous = EXTRA → synchronous = OFF]")',
)


@pytest.mark.slow
def test_some_mutants_are_caught_and_harmless_ones_survive() -> None:
    """The others take half an hour: make mutants."""
    by_name = {mutant.name: mutant for mutant in mutants()}
    quick = ("tests/client/test_durability.py",)
    sample = [replace(by_name[name], tests=quick) for name in SAMPLE]
    harmless = replace(sample[0], edit=replace(sample[0].edit, text="os.fsync(file.fileno())"))
    missing: Mutant = replace(sample[0], tests=("tests/client/test_no_such.py",))
    before = (ROOT / sample[0].file).read_bytes()
    with copies(1) as (folder,):
        limits = limits_of([harmless], [folder])
        for mutant in sample:
            outcome = try_mutant(mutant, folder, limits[quick])
            assert outcome.caught and outcome.by.startswith("tests/client/test_durability.py::")
        assert not try_mutant(harmless, folder, limits[quick]).caught
        with pytest.raises(NoTests, match="cannot be run"):
            try_mutant(missing, folder, 60)
    assert (ROOT / sample[0].file).read_bytes() == before, "only the copy was changed"
