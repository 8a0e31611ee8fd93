"""Teams of other shapes than the main job: a sub-agent, a shared checkout, set-up and rebase, limits, mail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from support.invariants import violations
from support.live import Bench, bench

Turn = dict[str, object]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def prepare(place: Bench, spec: str, agents: dict[str, Sequence[Turn]], files: dict[str, str] | None = None) -> None:
    place.make_repo(files or {"readme.txt": "hello\n", ".gitignore": "*.local\n"})
    (place.root / "spec.yaml").write_text(
        f"version: 1\nname: shapes\nmodel: script:script.yaml\nrepo: {{path: repo}}\n{spec}"
    )
    (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": agents}))


def up(place: Bench, *args: str, expect: int = 0) -> str:
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust", *args)
    assert done.returncode == expect, done.stdout + done.stderr
    assert violations(place.run_dir("r") / "ledger.rlog") == []
    return done.stdout + done.stderr


def test_a_lead_hands_out_work_and_asks_a_sub_agent(place: Bench) -> None:
    prepare(
        place,
        "permissions: {mode: acceptEdits}\n"
        "agents:\n"
        "  lea: {definition: lead, prompt: Get a greeting written.}\n"
        "  coder: {definition: coder}\n",
        {
            "lea": [
                {
                    "calls": {
                        "Agent": {
                            "subagent_type": "explore",
                            "description": "Look at the readme",
                            "prompt": "What does readme.txt say?",
                        }
                    }
                },
                {
                    "expect": {"tool_result_of": "Agent", "matches": "It says hello"},
                    "calls": {"TaskCreate": {"subject": "Greet", "description": "Write greeting.txt"}},
                },
                {
                    "capture": {"task": "#([0-9]+)"},
                    "calls": {"TaskUpdate": {"taskId": "${task}", "owner": "coder"}},
                },
                {"say": "Handed out.", "repeat": True},
            ],
            "lea-*": [
                {"calls": {"Read": {"file_path": "readme.txt"}}},
                {"expect": "hello", "say": "It says hello."},
            ],
            "coder": [
                {
                    "wait_for": {"mail_kind": "task_assigned"},
                    "capture": {"task": "#([0-9]+)"},
                    "calls": [
                        {"TaskUpdate": {"taskId": "${task}", "status": "in_progress"}},
                        {"Write": {"file_path": "greeting.txt", "content": "hello you\n"}},
                        {"TaskUpdate": {"taskId": "${task}", "status": "completed"}},
                    ],
                },
                {"say": "Done.", "repeat": True},
            ],
        },
    )
    up(place)
    assert place.git("show", "retinue/r/result:greeting.txt") == "hello you"
    children = [a for a in place.view("r").agents.values() if a.role == "child"]
    assert [(c.definition, c.ended) for c in children] == [("explore", "done")]


def test_two_agents_in_one_checkout_never_run_unsafe_calls_at_once(place: Bench) -> None:
    marks = place.repo / "marks.txt"
    commands = {
        name: f"echo {name} begins >> {marks}; sleep 0.3; echo {name} ends >> {marks}" for name in ("ada", "ben")
    }
    rules = json.dumps([f"Bash({command})" for command in commands.values()])
    turns = {
        name: [
            *({"calls": {"Bash": {"command": command}}} for _ in range(4)),
            {"calls": {"Write": {"file_path": f"{name}.txt", "content": name}}},
            {"say": "Done."},
        ]
        for name, command in commands.items()
    }
    prepare(
        place,
        f"permissions: {{mode: acceptEdits, allow: {rules}}}\n"
        "agents:\n"
        "  ada: {isolation: none, prompt: Begin.}\n"
        "  ben: {isolation: none, prompt: Begin.}\n",
        turns,
    )
    up(place)
    lines = marks.read_text().splitlines()
    assert len(lines) == 16
    for begins, ends in zip(lines[::2], lines[1::2], strict=True):
        assert (begins.split()[0], begins.split()[1], ends.split()[1]) == (ends.split()[0], "begins", "ends")
    assert {line.split()[0] for line in lines} == {"ada", "ben"}
    assert (place.repo / "ada.txt").read_text() == "ada"
    # The sandbox leaves nothing of its own in the user's checkout.
    assert sorted(path.name for path in place.repo.iterdir()) == [
        *(".git", ".gitignore", "ada.txt", "ben.txt", "marks.txt", "readme.txt"),
    ]


def test_set_up_ignored_files_rebase_and_a_target_branch(place: Bench) -> None:
    prepare(
        place,
        "permissions: {mode: acceptEdits}\n"
        "agents:\n"
        "  ada: {definition: coder}\n"
        "  ben: {definition: coder}\n"
        "tasks:\n"
        "  - {id: a, subject: A, owner: ada, done_when: test -e a.txt && test -e made.local}\n"
        "  - {id: b, subject: B, owner: ben, done_when: test -e b.txt}\n"
        "merge: {strategy: rebase, into: release}\n",
        {
            name: [
                {
                    "wait_for": {"mail_kind": "task_assigned"},
                    "calls": [
                        {"TaskUpdate": {"taskId": name[0], "status": "in_progress"}},
                        {"Read": {"file_path": "made.local"}},
                        {"Read": {"file_path": "secret.local"}},
                    ],
                },
                {
                    "expect": ["set up", "from the checkout"],
                    "calls": [
                        {"Write": {"file_path": f"{name[0]}.txt", "content": f"{name}\n"}},
                        {"TaskUpdate": {"taskId": name[0], "status": "completed"}},
                    ],
                },
                {"say": "Done.", "repeat": True},
            ]
            for name in ("ada", "ben")
        },
        {"readme.txt": "hello\n", ".gitignore": "*.local\n", ".worktreeinclude": "secret.local\n"},
    )
    spec = (place.root / "spec.yaml").read_text()
    setup = "repo: {path: repo, setup: [echo set up > made.local]}"
    (place.root / "spec.yaml").write_text(spec.replace("repo: {path: repo}", setup))
    (place.repo / "secret.local").write_text("from the checkout\n")
    place.git("branch", "release")
    up(place)
    log = place.git("log", "--format=%s|%an|%p", "release").splitlines()
    assert {line.split("|")[0] for line in log[:2]} == {"A", "B"}
    assert all(len(line.split("|")[2].split()) == 1 for line in log[:2])
    assert place.git("rev-parse", "release") == place.git("rev-parse", "retinue/r/result")
    assert place.git("branch", "--show-current") == "main"


def test_a_limit_of_requests_ends_the_run_and_says_so(place: Bench) -> None:
    prepare(
        place,
        "permissions: {mode: acceptEdits}\nagents:\n  ada: {prompt: Read for ever.}\nlimits: {turns: 3}\n",
        {"ada": [{"calls": {"Read": {"file_path": "readme.txt"}}, "repeat": True}]},
    )
    told = up(place, expect=1)
    assert "has used its 3 model requests (limits.turns)" in told
    assert place.view("r").agents["ada~1"].requests == 3


def test_a_denied_call_reaches_the_model_and_changes_nothing(place: Bench) -> None:
    prepare(
        place,
        "permissions: {mode: dontAsk, deny: [Read(//**/secret.txt)]}\nagents:\n  ada: {prompt: Try it.}\n",
        {
            "ada": [
                {"calls": {"Write": {"file_path": "new.txt", "content": "x"}}},
                {"expect": {"tool_result_of": "Write", "error": True}, "calls": {"Bash": {"command": "touch new.txt"}}},
                {"expect": {"tool_result_of": "Bash", "error": True}, "calls": {"Read": {"file_path": "secret.txt"}}},
                {"expect": {"tool_result_of": "Read", "error": True}, "say": "Nothing is allowed."},
            ]
        },
        {"secret.txt": "s\n"},
    )
    up(place)
    ada = place.view("r").agents["ada~1"]
    assert (ada.calls, ada.denied, ada.last_text) == (3, 3, "Nothing is allowed.")


def test_mail_of_the_human_wakes_an_idle_agent(place: Bench) -> None:
    busy = f"until [ -e {place.repo}/go.local ]; do sleep 0.1; done"
    prepare(
        place,
        f"permissions: {{mode: acceptEdits, allow: [{json.dumps(f'Bash({busy})')}]}}\n"
        "agents:\n  ada: {definition: coder}\n  ben: {prompt: Keep busy.}\n"
        "tasks:\n  - {id: a, subject: Wait for the word, owner: ada}\n",
        {
            "ada": [
                {
                    "wait_for": {"mail_kind": "task_assigned"},
                    "calls": {"TaskUpdate": {"taskId": "a", "status": "in_progress"}},
                },
                {"say": "I wait for the word."},
                {
                    "expect": "the word is",
                    "capture": {"word": "the word is ([a-z]+)"},
                    "calls": [
                        {"Write": {"file_path": "word.txt", "content": "${word}\n"}},
                        {"TaskUpdate": {"taskId": "a", "status": "completed"}},
                    ],
                },
                {"say": "Done.", "repeat": True},
            ],
            "ben": [{"calls": {"Bash": {"command": busy}}}, {"say": "Done."}],
        },
    )
    started = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust", "--detach")
    assert started.returncode == 0, started.stderr
    with place.start("logs", "r", "-f") as logs:
        assert logs.stdout is not None
        for line in logs.stdout:
            if "says: I wait for the word" in line:
                sent = place.retinue("send", "r", "ada", "the word is plover")
                assert (sent.returncode, sent.stdout) == (0, "stored for ada\n"), sent.stderr
            if "merged" in line:
                (place.repo / "go.local").touch()
        assert logs.wait() == 0
    assert violations(place.run_dir("r") / "ledger.rlog") == []
    assert place.git("show", "retinue/r/result:word.txt") == "plover"


def test_a_recording_of_a_run_is_a_model_for_another(place: Bench) -> None:
    prepare(
        place,
        "permissions: {mode: acceptEdits}\nagents:\n  ada: {prompt: Write it.}\n",
        {
            "ada": [
                {"calls": {"Write": {"file_path": "new.txt", "content": "from the script\n"}}},
                {"say": "Written."},
            ]
        },
    )
    up(place)
    (place.root / "script.yaml").write_text("version: 1\nagents: {ada: [{say: I would say something else.}]}\n")
    again = place.retinue("up", "spec.yaml", "--run-id", "again", "--ephemeral", "--model", "replay:r")
    assert again.returncode == 0, again.stdout + again.stderr
    ada = place.view("again").agents["ada~1"]
    assert (ada.model, ada.calls, ada.last_text) == ("replay:r", 1, "Written.")
    assert (place.run_dir("again") / "wt" / "ada~1" / "new.txt").read_text() == "from the script\n"
