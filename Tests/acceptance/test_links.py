"""The documents' links, as far as they can be checked without building pages (`make docs`)."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.sfud import REPOSITORY

CHECK = REPOSITORY / "Scripts/check-links"
DOCS = REPOSITORY / "Scripts/docs"

#: A page, and what is wrong with it, by line.
DEAD = {
    "[a](other.md) [b](missing.md)": "missing.md: no such file",
    "[a](#first-part) [b](#second)": "#second: no such heading",
    "[a](other.md#there--here) [b](other.md#there-here)": "other.md#there-here: no such heading",
    "[a](other.md#twice-1) [b](other.md#twice-2)": "other.md#twice-2: no such heading",
    "[![a](missing.png)](other.md)": "missing.png: no such file",
    "[a][known] [b][unknown]\n\n[known]: other.md": "[b][unknown]: no such definition",
    "[a](../outside.md)": "../outside.md: it leads out of the folder",
    "[a](data.json#name)": "data.json#name: only Markdown has headings",
    "[a\nb](missing\\_too.md)": "missing\\_too.md: no such file",
    "[a](other.md#not-a-heading)": "other.md#not-a-heading: no such heading",
    "[a]()": ": it is empty",
    '<a href="gone.md">a</a>': "gone.md: no such file",
}
OTHER = "# There & `here`\n\n## Twice\n\n## Twice\n\n```\n# Not a heading\n```\n"


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def module(path: Path):
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_"), str(path))
    found = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(found)
    return found


def test_no_link_of_the_documents_is_dead():
    done = run(CHECK)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 300, done.stdout


@pytest.mark.parametrize("text", DEAD)
def test_a_dead_link_is_found(tmp_path, text):
    folder = tmp_path / "documents"
    folder.mkdir()
    (tmp_path / "outside.md").write_text("# Outside\n")
    (folder / "other.md").write_text(OTHER)
    (folder / "data.json").write_text("{}")
    (folder / "page.md").write_text(f"# First part\n\n`[x](nowhere.md)`\n\n{text}\n")
    done = run(CHECK, folder)
    assert done.returncode == 1
    assert done.stderr == f"page.md:5: {DEAD[text]}\n"
    (folder / "page.md").write_text("# First part\n\n```\n[x](nowhere.md)\n```\n[a](other.md)\n")
    assert run(CHECK, folder).returncode == 0


def test_a_dead_link_of_a_page_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="top">a</h1><a href="#top">a</a>\n<a href="#gone">b</a>\n<a href="no.html">c</a>\n'
        '<script src="https://example.org/x.js"></script>\n<a href="https://example.org/">d</a>\n'
    )
    done = run(CHECK, "--site", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "index.html:2: #gone: no such anchor",
        "index.html:3: no.html: no such file",
        "index.html:4: https://example.org/x.js: it is loaded from elsewhere",
    ]


def test_a_folder_without_links_is_no_success(tmp_path):
    assert run(CHECK, tmp_path).returncode == 2


def test_what_is_installed_is_whole(tmp_path):
    done = run(DOCS, "collect", tmp_path)
    assert done.returncode == 0, done.stderr
    checked = run(CHECK, tmp_path)
    assert checked.returncode == 0, checked.stderr
    wanted = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "docs").rglob("*.md")]
    assert wanted and all((tmp_path / path).exists() for path in wanted)


def test_the_reference_has_everything_of_the_contract(tmp_path):
    assert run(DOCS, "collect", tmp_path).returncode == 0
    done = run(DOCS, "reference", tmp_path / "docs/reference")
    assert done.returncode == 0, done.stderr
    # Types link to one another, and methods to ipc.md.
    checked = run(CHECK, tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert int(checked.stdout.split()[0]) > 1500, checked.stdout

    spec = json.loads((REPOSITORY / "docs/openrpc.json").read_text())
    known = module(CHECK)
    for page, names in {
        "methods": [one["name"] for one in spec["methods"]],
        "events": [one["name"] for one in spec["x-events"]],
        "types": list(spec["components"]["schemas"]),
    }.items():
        text = (tmp_path / f"docs/reference/{page}.md").read_text()
        assert names and {known.slug(name) for name in names} <= known.anchors(text), page
    errors = (tmp_path / "docs/reference/errors.md").read_text()
    assert all(f"| `{one['reason']}` |" in errors for one in spec["x-errors"])
    methods = (tmp_path / "docs/reference/methods.md").read_text()
    for method in spec["methods"]:
        section = methods.split(f"\n### {method['name']}\n")[1].split("\n### ")[0]
        for param in method["params"]:
            mark = "" if param["required"] else "?"
            assert f"| `{param['name']}`{mark} " in section or (
                f"| `{param['name']}` (one of these) " in section
            ), (method["name"], param)


def test_every_document_is_in_the_navigation(tmp_path):
    assert run(DOCS, "collect", tmp_path).returncode == 0
    assert run(DOCS, "reference", tmp_path / "docs/reference").returncode == 0
    pages = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    named = module(DOCS).navigation()
    assert sorted(named) == sorted(pages)
