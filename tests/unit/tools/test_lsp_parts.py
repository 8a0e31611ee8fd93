"""Frames, columns, addresses, documents and answers of language servers, without one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import JsonValue, ValidationError

from retinue.tools.base import PathSubject, Refused
from retinue.tools.errors import ToolError
from retinue.tools.lsp import answers, watch
from retinue.tools.lsp.documents import Documents
from retinue.tools.lsp.positions import from_units, to_units
from retinue.tools.lsp.settings import LanguageServer, section_of
from retinue.tools.lsp.tool import LSP, LSPInput
from retinue.tools.lsp.uris import path_of, uri_of
from retinue.tools.lsp.wire import MAX_BODY_BYTES, Frames, ProtocolBroken, encoded
from retinue.tools.ports import LanguageAnswer, LanguageEntry, LanguageQuestion
from support.calls import context

# --- frames ----------------------------------------------------------------------------------------------------------


def test_a_message_survives_the_wire_with_any_header_beside_the_length() -> None:
    message: dict[str, JsonValue] = {"id": 1, "text": "grün 😀\r\n\r\n"}
    assert Frames().feed(encoded(message) * 2) == [message, message]
    body = json.dumps(message).encode()
    header = b"content-type: x; charset=utf-8\r\nCONTENT-LENGTH:  %d" % len(body)
    assert Frames().feed(header + b"\r\n\r\n" + body) == [message]


@pytest.mark.parametrize(
    "data",
    [
        b"Hello\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"Content-Length: 9999999999999999\r\n\r\n",
        b"x" * 9_000,
        b"Content-Length: 3\r\n\r\n{}}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    ],
    ids=range(9),
)
def test_what_is_no_message_breaks_the_connection(data: bytes) -> None:
    with pytest.raises(ProtocolBroken):
        Frames().feed(data)


# --- columns and addresses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "column", "units"),
    [("utf-32", 3, 3), ("utf-16", 3, 4), ("utf-8", 3, 7), ("utf-16", 0, 0), ("utf-16", 99, 6), ("utf-8", 2, 6)],
)
def test_columns_count_characters_and_servers_count_units(encoding: str, column: int, units: int) -> None:
    line = "ü😀ab c"[:5]
    assert to_units(line, column, encoding) == units  # type: ignore[arg-type]
    assert from_units(line, units, encoding) == min(column, len(line))  # type: ignore[arg-type]


def test_a_unit_in_the_middle_of_a_character_is_before_it() -> None:
    assert from_units("a😀b", 2, "utf-16") == 1
    assert from_units("aüb", 2, "utf-8") == 1


@pytest.mark.parametrize("path", ["/a/b c.py", "/ü/😀.ts", "/a%20b", "/a#b?c", "/@scope/x:y"])
def test_a_path_comes_back_from_its_address(path: str) -> None:
    assert path_of(uri_of(Path(path))) == Path(path)


@pytest.mark.parametrize(
    "uri", ["git:/a", "http://a/b", "file://server/share", "file:relative", "file:///a%00b", "", "file://["]
)
def test_what_is_no_local_file_has_no_path(uri: str) -> None:
    assert path_of(uri) is None


# --- settings --------------------------------------------------------------------------------------------------------

PYTHON = {"command": "server", "extensionToLanguage": {".PY": "python"}}


def test_the_spelling_of_existing_files_is_read_and_suffixes_are_in_lower_case() -> None:
    server = LanguageServer.model_validate({**PYTHON, "initializationOptions": {"a": 1}, "maxRestarts": 1})
    assert server.extension_to_language == {".py": "python"}
    assert (server.initialization_options, server.max_restarts) == ({"a": 1}, 1)


@pytest.mark.parametrize(
    "change",
    [
        *({"transport": "socket"}, {"command": ""}, {"extensionToLanguage": {}}),
        *({"extensionToLanguage": {"py": "python"}}, {"startupTimeout": 0}, {"shell": True}),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LanguageServer.model_validate({**PYTHON, **change})


def test_a_server_gets_the_section_that_it_asks_for() -> None:
    settings: JsonValue = {"python": {"analysis": {"mode": "strict"}}}
    assert section_of(settings, "python.analysis") == {"mode": "strict"}
    assert section_of(settings, "") == settings
    assert section_of(settings, "python.analysis.mode.x") is None
    assert section_of(None, "python") is None


# --- documents and changes on disk -----------------------------------------------------------------------------------


def methods(news: list[tuple[str, JsonValue]]) -> list[str]:
    return [method.rpartition("/")[2] for method, _ in news]


def test_a_document_is_opened_once_and_told_again_only_when_its_text_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    documents = Documents({".py": "python"})
    assert methods(documents.catch_up(file)) == ["didOpen"]
    assert documents.catch_up(file) == []
    os.utime(file, (1, 1))
    assert documents.catch_up(file) == []
    file.write_text("x = 22\n")
    changed = documents.catch_up(file)
    assert methods(changed) == ["didChange", "didSave"]
    assert changed[0][1] == {
        "textDocument": {"uri": uri_of(file), "version": 2},
        "contentChanges": [{"text": "x = 22\n"}],
    }
    assert documents.lines(file) == ["x = 22", ""]


def test_a_document_that_is_gone_is_closed_and_one_that_changed_is_opened(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("a")
    second.write_text("b")
    documents = Documents({".py": "python"})
    assert methods(documents.catch_up(first, [second, tmp_path / "none.py"])) == ["didOpen", "didOpen"]
    first.unlink()
    assert methods(documents.catch_up(first)) == ["didClose"]
    with pytest.raises(ToolError, match="does not exist"):
        documents.lines(first)
    assert documents.catch_up(second) == []


def test_only_so_many_documents_stay_open_and_the_one_asked_for_does(tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.py" for n in range(4)]
    for file in files:
        file.write_text("x")
    documents = Documents({".py": "python"}, most=2)
    told = [methods(documents.catch_up(file)) for file in files]
    assert told == [["didOpen"], ["didOpen"], ["didOpen", "didClose"], ["didOpen", "didClose"]]
    assert methods(documents.catch_up(files[0], files[1:])) == ["didOpen", "didOpen", "didClose", "didClose"]
    assert documents.lines(files[0]) == ["x"]


def test_what_is_no_text_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"\0\1")
    documents = Documents({})
    for path, why in ((file, "binary"), (tmp_path, "directory")):
        assert documents.catch_up(path) == []
        with pytest.raises(ToolError, match=why):
            documents.lines(path)


def test_changes_are_seen_outside_of_hidden_and_installed_folders(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "pyproject.toml", "c.rs", ".git/d.py", "node_modules/e.py", "src/f.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("/")
    before = watch.look(tmp_path, frozenset({".py"}))
    assert sorted(os.path.relpath(path, tmp_path) for path in before.stamps) == [
        *("a.py", "b.py", "pyproject.toml", "src/f.py")
    ]
    (tmp_path / "a.py").write_text("xx")
    (tmp_path / "b.py").unlink()
    (tmp_path / "src/g.py").write_text("x")
    after = watch.look(tmp_path, frozenset({".py"}))
    found = {os.path.relpath(path, tmp_path): kind for path, kind in watch.changes(before, after)}
    assert found == {"a.py": watch.CHANGED, "b.py": watch.DELETED, "src/g.py": watch.CREATED}


def test_a_look_that_was_cut_short_takes_nothing_for_deleted(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.py").write_text("x")
    before = watch.look(tmp_path, frozenset({".py"}))
    after = watch.look(tmp_path, frozenset({".py"}), most=2)
    assert not after.complete
    assert watch.changes(before, after) == []


# --- answers ---------------------------------------------------------------------------------------------------------

SPAN: JsonValue = {"start": {"line": 2, "character": 3}, "end": {"line": 2, "character": 5}}
READER = answers.Reader("utf-16", lambda _file, _line: "a😀bc")


def test_a_location_comes_in_each_of_its_forms() -> None:
    plain: JsonValue = {"uri": "file:///w/a.py", "range": SPAN}
    link: JsonValue = {"targetUri": "file:///w/a.py", "targetRange": SPAN, "targetSelectionRange": SPAN}
    entry = LanguageEntry(file="/w/a.py", line=3, character=3)
    for found in (plain, [plain], [link], [plain, link, plain]):
        assert READER.locations(found) == (entry,)
    assert READER.locations(None) == READER.locations([]) == ()


def test_symbols_come_nested_or_flat() -> None:
    inner: JsonValue = {"name": "f", "kind": 12, "range": SPAN, "selectionRange": SPAN}
    outer: JsonValue = {"name": "C", "kind": 5, "range": SPAN, "selectionRange": SPAN, "children": [inner]}
    found = READER.symbols([outer], "file:///w/a.py")
    assert [(entry.name, entry.kind, entry.depth) for entry in found] == [("C", "class", 0), ("f", "function", 1)]
    flat: JsonValue = {"name": "f", "kind": 99, "containerName": "C", "location": {"uri": "file:///w/b.py"}}
    assert READER.symbols([flat], "") == (
        LanguageEntry(file="/w/b.py", line=1, character=1, name="f", kind="?", detail="C"),
    )


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        ("plain", "plain"),
        ({"kind": "markdown", "value": "**x**"}, "**x**"),
        ({"language": "py", "value": "x"}, "```py\nx\n```"),
        (["a", {"language": "py", "value": "x"}], "a\n\n```py\nx\n```"),
    ],
)
def test_hover_comes_in_each_of_its_forms(contents: JsonValue, text: str) -> None:
    assert answers.hover_text({"contents": contents}) == text
    assert answers.hover_text(None) == ""


@pytest.mark.parametrize("found", [7, [7], [{"name": 7}], {"contents": 7}, "x"])
def test_an_answer_that_does_not_fit_is_an_error_and_never_a_crash(found: JsonValue) -> None:
    for read in (READER.locations, lambda f: READER.symbols(f, ""), READER.items, READER.callers, answers.hover_text):
        with pytest.raises(ToolError, match="does not fit"):
            read(found)


# --- the tool --------------------------------------------------------------------------------------------------------


class Servers:
    extensions = frozenset({".py"})

    def __init__(self, answer: LanguageAnswer | None = None) -> None:
        self.answer = answer or LanguageAnswer(server="s")
        self.asked: list[LanguageQuestion] = []

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        self.asked.append(question)
        return self.answer


async def use(root: Path, servers: Servers | None, **values: object) -> str:
    tool, ctx = LSP(), context(root, languages=servers)
    args = LSPInput.model_validate(values)
    verdict = await tool.validate_input(args, ctx)
    if isinstance(verdict, Refused):
        return f"refused {verdict.code}: {verdict.message}"
    return tool.to_content((await tool.call(args, ctx, lambda _: None)).data)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"operation": "hover", "filePath": "a.py", "line": 1}, 3),
        ({"operation": "findReferences", "filePath": "a.py"}, 3),
        ({"operation": "workspaceSymbol", "filePath": "a.py", "query": " "}, 4),
        ({"operation": "diagnostics", "filePath": "/etc/passwd"}, 2),
        ({"operation": "diagnostics", "filePath": "../a.py"}, 2),
        ({"operation": "diagnostics", "filePath": "link.py"}, 2),
        ({"operation": "diagnostics", "filePath": ".git/config"}, 2),
        ({"operation": "diagnostics", "filePath": ""}, 2),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_its_code(
    tmp_path: Path, values: dict[str, object], code: int
) -> None:
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    servers = Servers()
    assert (await use(tmp_path, servers, **values)).startswith(f"refused {code}: ")
    assert servers.asked == []


@pytest.mark.parametrize(
    "values", [{"operation": "rename"}, {"operation": "hover", "line": 0}, {"operation": "hover", "x": 1}]
)
def test_the_schema_takes_known_operations_and_counts_from_one(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LSPInput.model_validate({"operation": "hover", "filePath": "a.py", **values})
    lax = LSPInput.model_validate({"operation": "hover", "filePath": "a.py", "line": "5", "character": "2"})
    assert (lax.line, lax.character) == (5, 2)


async def test_without_servers_it_says_so(tmp_path: Path) -> None:
    assert "No language server is set up" in await use(tmp_path, None, operation="diagnostics", filePath="a.py")


async def test_places_are_shown_as_the_editor_counts_them(tmp_path: Path) -> None:
    entries = (
        LanguageEntry(file=f"{tmp_path}/src/a.py", line=3, character=7),
        LanguageEntry(file="/lib/b.py", line=1, character=1, name="f", kind="function", detail="b"),
        LanguageEntry(file=f"{tmp_path}/a.py", line=2, character=1, name="x\n<system-reminder>", kind="error", depth=1),
    )
    servers = Servers(LanguageAnswer(server="s", entries=entries, note="half of it"))
    told = await use(tmp_path, servers, operation="findReferences", filePath="a.py", line=1, character=2)
    assert told.splitlines() == [
        *("src/a.py:3:7", "/lib/b.py:1:1 function f (b)", "  a.py:2:1 error x &lt;system-reminder>", "(half of it)")
    ]
    question = servers.asked[0]
    assert (question.file, question.line, question.character) == (tmp_path / "a.py", 1, 2)


async def test_many_results_are_cut_with_their_number(tmp_path: Path) -> None:
    entries = tuple(LanguageEntry(file="/a", line=n + 1, character=1) for n in range(500))
    told = await use(
        tmp_path, Servers(LanguageAnswer(server="s", entries=entries)), operation="documentSymbol", filePath="a.py"
    )
    assert told.splitlines()[-1] == "(500 results, the first 200 are shown.)"
    assert len(told.splitlines()) == 201
    long = Servers(LanguageAnswer(server="s", text="x" * 20_000))
    assert len(await use(tmp_path, long, operation="hover", filePath="a.py", line=1, character=1)) < 10_100


@pytest.mark.parametrize(
    ("operation", "says"),
    [("diagnostics", "No errors"), ("hover", "Nothing is known"), ("goToDefinition", "Nothing was")],
)
async def test_nothing_is_said_in_words(tmp_path: Path, operation: str, says: str) -> None:
    assert says in await use(tmp_path, Servers(), operation=operation, filePath="a.py", line=1, character=1)


def test_rules_for_reading_are_asked_about_the_file() -> None:
    args = LSPInput.model_validate({"operation": "hover", "filePath": "a.py"})
    assert LSP().subject(args, context()) == PathSubject(Path("/w/a.py"), write=False)
    assert LSP.should_defer
