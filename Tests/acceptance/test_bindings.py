"""The types for other languages: up to date, and what the languages' own checkers accept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINDINGS = ROOT / "bindings"

PYTHON = """
from sfud import Caller, Event, RoomCreateParams


def open_room(sfud: Caller) -> float:
    params: RoomCreateParams = {"room": "r1", "settings": {"mode": "lecture", "knock": None}}
    return sfud.call("room.create", params)["created"]


def reason(event: Event) -> str:
    return event["data"]["reason"] if event["event"] == "room.closed" else ""


def wrong(sfud: Caller) -> None:
    sfud.call("room.get", {"roam": "r1"})  # REFUSED
"""

TYPESCRIPT = """
import type { Event, Methods } from "./sfud";

declare function call<Name extends keyof Methods>(
  method: Name, params: Methods[Name]["params"],
): Promise<Methods[Name]["result"]>;

export async function openRoom(): Promise<number> {
  const room = await call("room.create", { room: "r1", settings: { mode: "lecture", knock: null } });
  return room.created;
}

export function reason(event: Event): string {
  return event.event === "room.closed" ? event.data.reason : "";
}

// @ts-expect-error: an unknown parameter is refused.
void call("room.get", { roam: "r1" });
"""

GO = """
package sfud

import (
	"encoding/json"
	"testing"
)

func write[Params, Result any](method Method[Params, Result], params Params) string {
	text, _ := json.Marshal(params)
	return method.Name + string(text)
}

func TestWriting(test *testing.T) {
	stream, priority := StreamID("s2"), Priority(7)
	params := SubscriptionUpdateParams{
		Room: "r1", Subscription: "s1", Stream: &stream,
		Priority:           &Change[Priority]{Value: &priority},
		PreferredFrameRate: &Change[FrameRate]{},
	}
	found := write(MethodSubscriptionUpdate, params)
	expected := `subscription.update{"room":"r1","subscription":"s1",` +
		`"preferredFrameRate":null,"priority":7,"stream":"s2"}`
	if found != expected {
		test.Errorf("%s", found)
	}
}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with the bindings, for a program that uses them."""
    for path in BINDINGS.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def run(*command, folder: Path, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_bindings_are_up_to_date(tmp_path):
    assert run(ROOT / "Scripts" / "bindings", "--to", tmp_path, folder=ROOT).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in BINDINGS.iterdir()}
    for path in tmp_path.iterdir():
        assert path.read_text() == (BINDINGS / path.name).read_text(), "run make bindings"


def test_python_checks_the_types(folder):
    (folder / "use.py").write_text(PYTHON)
    wrong = PYTHON.splitlines().index(next(x for x in PYTHON.splitlines() if "REFUSED" in x)) + 1
    checked = run(sys.executable, "-m", "mypy", "--strict", "use.py", "sfud.py", folder=folder)
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert errors and all(line.startswith(f"use.py:{wrong}:") for line in errors), checked.stdout
    assert run(sys.executable, "-c", "import sfud", folder=folder).returncode == 0


def test_typescript_checks_the_types(folder):
    (folder / "use.ts").write_text(TYPESCRIPT)
    checked = run("tsc", "--noEmit", "--strict", "--target", "es2020", "use.ts", folder=folder)
    assert checked.returncode == 0, checked.stdout


# Debian's Go is 80 MB, which a run of all tests has no time to fetch.
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go_checks_the_types(folder):
    (folder / "sfud_test.go").write_text(GO.lstrip())
    (folder / "go.mod").write_text("module sfud\n\ngo 1.19\n")
    laid_out = run("gofmt", "-l", "sfud.go", folder=folder)
    assert (laid_out.returncode, laid_out.stdout) == (0, "")
    cache = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    for command in ["vet", "test"]:
        checked = run("go", command, ".", folder=folder, **cache)
        assert checked.returncode == 0, checked.stdout + checked.stderr
