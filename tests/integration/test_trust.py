"""What a repository brings counts only when it was trusted: read at the base, recorded by hash, asked about again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from retinue.orchestrator.cli import trusting
from retinue.orchestrator.cli.trusting import look, remember, settled
from retinue.orchestrator.settings.files import read_brought
from retinue.orchestrator.trust.launch import Gathered
from retinue.orchestrator.trust.store import TrustStore
from retinue.orchestrator.workspaces.git import Git
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import SpecError
from support.cli import Cli

GRANTS = {
    "permissions": {"allow": ["Bash(make:*)"], "deny": ["Read(.env)"], "defaultMode": "acceptEdits"},
    "env": {"TOKEN": "from-the-repository"},
}
SPEC = "version: 1\nname: t\nmodel: 'script:play.yaml'\nagents: {ada: {prompt: hi}}\n"


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(repo: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "-c", "user.name=U", "-c", "user.email=u@home", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "repo"
    (made / ".claude").mkdir(parents=True)
    (made / ".claude" / "settings.json").write_text(json.dumps(GRANTS))
    (made / "play.yaml").write_text("agents:\n  '*':\n    - say: hello\n")
    git(made, "init", "-q", "-b", "main")
    commit(made)
    (made / "team.yaml").write_text(SPEC)
    monkeypatch.chdir(made)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path / "state", capsys)


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore.of(tmp_path / "state")


def modes(cli: Cli) -> object:
    plan = cli.at("plan", "team.yaml", "--json").json["plan"]
    assert isinstance(plan, dict)
    members = plan["members"]
    assert isinstance(members, list)
    (member,) = members
    assert isinstance(member, dict)
    rights = member["rights"]
    assert isinstance(rights, list)
    (only,) = rights
    assert isinstance(only, dict)
    return only["mode"]


def test_trust_is_given_shown_taken_back_and_keyed_by_the_repository(cli: Cli, repo: Path, tmp_path: Path) -> None:
    assert modes(cli) == "default"
    assert "not trusted, so without effect: .claude/settings.json: 1 allow rule" in cli.at("plan", "team.yaml").err
    assert cli.at("trust", "--show", "--json").json["state"] == "untrusted"
    assert cli.at("trust").code == 0
    assert modes(cli) == "acceptEdits"
    (record,) = (tmp_path / "state" / "trust").iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "HEAD")
    assert cli.at("trust", tmp_path / "other", "--show", "--json").json["state"] == "trusted"
    assert cli.at("trust", "--revoke").code == 0
    assert modes(cli) == "default"


def test_deny_rules_count_without_trust(cli: Cli, repo: Path) -> None:
    found = cli.at("why", "ada", "Read", '{"file_path": ".env"}', "--spec", "team.yaml", "--json").json
    assert (found["decision"], found["source"]) == ("deny", "project rule Read(.env)")


def test_what_was_trusted_is_exactly_what_was_there(cli: Cli, repo: Path) -> None:
    cli.at("trust")
    (repo / ".claude" / "settings.json").write_text("{}")
    assert modes(cli) == "acceptEdits"  # a launch starts from the commit, not from the checkout
    commit(repo)
    shown = cli.at("trust", "--show").out
    assert "changed" in shown
    assert ".claude/settings.json changed" in shown


def test_local_files_count_from_the_checkout_and_for_the_hash(store: TrustStore, repo: Path) -> None:
    before = look(repo, "head", store)
    store.record(before.repository, before.part, "2026-01-01")
    (repo / ".claude" / "settings.local.json").write_text('{"permissions": {"allow": ["Bash(rm:*)"]}}')
    after = look(repo, "head", store)
    assert (after.standing.state, after.standing.changes) == ("changed", (".claude/settings.local.json is new",))


def test_no_link_is_followed_neither_in_a_commit_nor_on_disk(store: TrustStore, repo: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil.json"
    evil.write_text(json.dumps(GRANTS))
    (repo / ".claude" / "settings.json").unlink()
    (repo / ".claude" / "settings.json").symlink_to(evil)
    commit(repo)
    (repo / ".claude" / "settings.local.json").symlink_to(evil)
    found = look(repo, "head", store)
    assert dict(found.part) == {}
    assert set(found.brought.links) == {".claude/settings.json", ".claude/settings.local.json"}
    (repo / ".claude").rename(repo / "real")
    (repo / ".claude").symlink_to(repo / "real")

    async def from_disk() -> dict[str, bytes]:
        user = await UserRepo.open(Git(), repo)
        return dict((await read_brought(user, await user.resolve_base("worktree"), repo)).contents)

    assert asyncio.run(from_disk()) == {}


def test_a_checkout_may_lie_behind_a_link(store: TrustStore, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    found = look(tmp_path / "link" / "repo", "worktree", store)
    assert (set(found.part), found.brought.links) == ({".claude/settings.json"}, ())


@pytest.mark.parametrize("base", ["head", "worktree"])
def test_a_base_decides_which_settings_count(store: TrustStore, repo: Path, base: str) -> None:
    (repo / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    found = look(repo, base, store).settings(trusted=True)
    (rules,) = found.settings.rules
    assert rules.deny == (("Read(.env)",) if base == "head" else ("Bash",))


def test_piped_what_changed_is_refused_and_once_accepted_for_a_launch(store: TrustStore, repo: Path, cli: Cli) -> None:
    before = look(repo, "head", store)
    store.record(before.repository, before.part, "2026-01-01")
    (repo / ".claude" / "settings.local.json").write_text('{"env": {"A": "1"}}')
    with pytest.raises(SpecError) as caught:
        settled(look(repo, "head", store), cli.state, trust=False)
    assert ".claude/settings.local.json is new" in str(caught.value)
    assert "--trust" in str(caught.value)
    assert settled(look(repo, "head", store), cli.state, trust=True).env == {**GRANTS["env"], "A": "1"}
    assert look(repo, "head", store).standing.state == "changed"


@pytest.mark.parametrize("said", [True, False])
def test_on_a_terminal_a_person_is_asked_and_the_answer_kept(
    store: TrustStore, repo: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, said: bool
) -> None:
    def confirm(text: str, **how: object) -> bool:
        return said

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(trusting.typer, "confirm", confirm)
    found = settled(look(repo, "head", store), cli.state, trust=False)
    assert dict(found.env) == (GRANTS["env"] if said else {})
    assert look(repo, "head", store).trusted is said


def spec_of(repo: Path, store: TrustStore) -> Gathered:
    return look(repo / "team.yaml", "head", store)


def test_a_spec_of_the_repository_grants_nothing_before_it_was_trusted(store: TrustStore, repo: Path, cli: Cli) -> None:
    (repo / "team.yaml").write_text(f"{SPEC}permissions: {{allow: [Bash], mode: acceptEdits}}\n")
    assert spec_of(repo, store).grants == ()  # not part of the repository: the person's own
    commit(repo)
    found = spec_of(repo, store)
    assert found.grants == ("1 allow rule", "the mode acceptEdits")
    with pytest.raises(SpecError, match="the spec is part of the repository"):
        settled(found, cli.state, trust=False)
    store.record(found.repository, found.part, "2026-01-01")
    assert spec_of(repo, store).trusted
    (repo / "team.yaml").write_text(f"{SPEC}permissions: {{allow: [Bash, Edit]}}\n")
    assert spec_of(repo, store).standing.changes == ("team.yaml changed",)


def test_an_always_is_kept_in_the_local_settings_and_keeps_trust(store: TrustStore, repo: Path) -> None:
    before = look(repo, "head", store)
    store.record(before.repository, before.part, "2026-01-01")
    remember(("Bash(npm test)",), repo, store)
    after = look(repo, "head", store)
    assert after.trusted
    assert [each.allow for each in after.settings(trusted=True).settings.rules if each.source == "local"] == [
        ("Bash(npm test)",)
    ]


def test_an_always_of_a_repository_that_nobody_trusted_does_not_trust_it(store: TrustStore, repo: Path) -> None:
    remember(("Bash(npm test)",), repo, store)
    assert look(repo, "head", store).standing.state == "untrusted"


@pytest.mark.parametrize("damage", ["", "{", '{"repository": "/other", "digest": "", "files": {}, "day": ""}'])
def test_a_record_that_cannot_be_read_is_no_trust(store: TrustStore, repo: Path, damage: str) -> None:
    found = look(repo, "head", store)
    store.record(found.repository, found.part, "2026-01-01")
    (record,) = store.folder.iterdir()
    record.write_text(damage)
    assert look(repo, "head", store).standing.state == "untrusted"
    found = look(repo, "head", store)
    store.record(found.repository, found.part, "2026-01-01")
    record.chmod(0o666)
    assert look(repo, "head", store).standing.state == "untrusted"


def test_why_names_the_rule_its_source_and_every_step(cli: Cli, repo: Path) -> None:
    cli.at("trust")
    allowed = cli.at("why", "coder", "Bash", '{"command": "make test"}')
    assert (allowed.code, allowed.lines[0]) == (0, "Bash: allow, by project rule Bash(make:*)")
    refused = cli.at("why", "coder", "Bash", '{"command": "retinue down"}', "--json")
    assert (refused.code, refused.json["source"], refused.json["firm"]) == (1, "uncovered command", True)
    for wrong in (
        ("nobody", "Read", "{}"),
        ("coder", "Nothing", "{}"),
        ("coder", "Read", "[]"),
        ("coder", "Read", "{}"),
    ):
        assert cli.at("why", *wrong).code == 2
