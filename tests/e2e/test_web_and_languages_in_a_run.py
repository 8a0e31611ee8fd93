"""An agent of a run that reads a page, searches, and asks a language server in its sandbox; and a replay of it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from retinue.agents.records import SideAnswered, ToolFinished
from retinue.orchestrator.ledger.parse import parse_agent_record
from retinue.orchestrator.ledger.reader import read_all
from support.invariants import violations
from support.live import Bench, bench

pytestmark = pytest.mark.live

KEY = "a-search-key-of-nobody"
PAGE = b"<html><body><h1>Release notes</h1><p>The newest version is 2.1.</p></body></html>"
HITS = {"found": [{"name": "Notes", "href": "https://docs.example.org/notes", "about": "What is new"}]}
PYTHON = {"shapes.py": "def area(side: float) -> float:\n    return side**2\n\n\nprint(area('x'))\n"}


class Site(ThreadingHTTPServer):
    """A page, and a search service that wants its key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[tuple[str, str]] = []

    @property
    def port(self) -> int:
        return self.server_address[1]


class _Answers(BaseHTTPRequestHandler):
    server: Site  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("X-Key", "")))
        found = self.path.startswith("/search")
        body = json.dumps(HITS).encode() if found else PAGE
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if found else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@contextmanager
def site() -> Generator[Site]:
    with Site() as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()


def spec(port: int) -> str:
    return json.dumps(
        {
            "version": 1,
            "name": "reach",
            "model": "script:script.yaml",
            "small_model": "script:small.yaml",
            "repo": {"path": "repo"},
            "permissions": {
                "mode": "acceptEdits",
                "allow": ["WebSearch", "WebFetch(domain:localhost)"],
            },
            "web": {
                "local_hosts": [f"localhost:{port}"],
                "search": {
                    "endpoint": {
                        "url": f"http://localhost:{port}/search",
                        "key_env": "RT_SEARCH_KEY",
                        "key_header": "X-Key",
                        "key_prefix": "",
                        "results_path": "found",
                        "title_field": "name",
                        "url_field": "href",
                        "snippet_field": "about",
                    }
                },
            },
            "lsp": {
                "python": {
                    "command": str(Path(sys.executable).parent / "basedpyright-langserver"),
                    "args": ["--stdio"],
                    "extension_to_language": {".py": "python"},
                }
            },
            "agents": {"ada": {"prompt": "Look around."}},
        }
    )


def turns(port: int) -> list[dict[str, object]]:
    page = {"url": f"http://localhost:{port}/notes", "prompt": "Which version is the newest?"}
    place = {"filePath": "shapes.py", "line": 5, "character": 8}
    return [
        {"calls": [{"WebFetch": page}, {"WebSearch": {"query": "release notes"}}]},
        {
            "expect": [
                {"tool_result_of": "WebFetch", "error": False, "matches": r"\AThe page says 2\.1\.\Z"},
                {"tool_result_of": "WebSearch", "error": False, "matches": "docs.example.org/notes"},
            ],
            "calls": [
                {"LSP": {"operation": "goToDefinition", **place}},
                {"LSP": {"operation": "diagnostics", "filePath": "shapes.py"}},
            ],
        },
        {
            "expect": [
                {"tool_result_of": "LSP#1", "error": False, "matches": r"shapes\.py:1:5"},
                {"tool_result_of": "LSP#2", "error": False, "matches": r"shapes\.py:5:12 error"},
            ],
            "say": "Done.",
        },
    ]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def prepared(place: Bench, port: int) -> None:
    place.make_repo(PYTHON)
    (place.root / "spec.yaml").write_text(spec(port))
    (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": turns(port)}}))
    side = [{"matches": "newest version is 2.1[\\s\\S]*Which version", "say": "The page says 2.1."}]
    small = {"version": 1, "side": side, "agents": {"nobody": [{"say": "Nothing."}]}}
    (place.root / "small.yaml").write_text(json.dumps(small))


def test_an_agent_reads_a_page_searches_and_asks_a_language_server(place: Bench) -> None:
    with site() as served:
        prepared(place, served.port)
        up = ("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust")
        done = place.retinue(*up, env={"RT_SEARCH_KEY": KEY})
        assert done.returncode == 0, done.stdout + done.stderr
        view = place.view("r")
        ledger = place.run_dir("r") / "ledger.rlog"
        assert view.agents["ada~1"].last_text == "Done.", _results(ledger)
        assert [path.partition("?")[0] for path, _ in served.asked] == ["/notes", "/search"]
        assert dict(served.asked)["/search?q=release+notes"] == KEY
    assert violations(ledger) == []
    (answered,) = [r for r in _records(ledger) if isinstance(r, SideAnswered)]
    assert (answered.text, answered.model) == ("The page says 2.1.", "script:small.yaml")
    assert answered.usage.total > 0
    assert KEY.encode() not in b"".join(f.read_bytes() for f in place.run_dir("r").rglob("*") if f.is_file())
    assert [p for p in place.processes() if "langserver" in " ".join(p.cmdline())] == []


def test_without_the_key_of_the_search_nothing_starts(place: Bench) -> None:
    prepared(place, 9)
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust")
    assert done.returncode != 0
    assert "web.search.endpoint.key_env: RT_SEARCH_KEY is not set: export it in this shell" in done.stderr + done.stdout


def test_a_replay_of_the_run_has_the_answer_beside_the_conversation(place: Bench) -> None:
    with site() as served:
        prepared(place, served.port)
        env = {"RT_SEARCH_KEY": KEY}
        assert place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust", env=env).returncode == 0
        again = json.loads(spec(served.port)) | {"model": "replay:r", "small_model": "replay:r"}
        (place.root / "again.yaml").write_text(json.dumps(again))
        done = place.retinue("up", "again.yaml", "--run-id", "s", "--ephemeral", "--trust", env=env)
        assert done.returncode == 0, done.stdout + done.stderr
    assert place.view("s").agents["ada~1"].last_text == "Done."
    kept = [r for r in _records(place.run_dir("s") / "ledger.rlog") if isinstance(r, SideAnswered)]
    assert [(r.text, r.model) for r in kept] == [("The page says 2.1.", "replay:r")]


def _records(ledger: Path) -> list[object]:
    return [parse_agent_record(frame.kind, frame.body) for frame in read_all(ledger)]


def _results(ledger: Path) -> list[str]:
    return [r.result.content for r in _records(ledger) if isinstance(r, ToolFinished)]
