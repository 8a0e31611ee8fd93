"""Commands in the permission chain, over real folders and links: rules, modes, the sandbox, and what needs a person."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import AnyTool, Decision, Refused, ToolContext
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.shell.bash.confinement import confined
from retinue.tools.shell.bash.schema import BashInput
from retinue.tools.shell.bash.tool import Bash
from retinue.tools.shell.sandbox.policy import SandboxUse
from support.calls import context

MODES: tuple[Mode, ...] = ("default", "acceptEdits", "dontAsk", "bypassPermissions")
ON = SandboxUse("on", auto_allow=True)
BASH = Bash()


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "home" / "tree"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "a.py").write_text("x\n")
    (root / ".env").write_text("KEY=1\n")
    (root / "link").symlink_to("/etc")
    (root / "inner").symlink_to("src")
    return context(root, env={"HOME": str(tmp_path / "home")})


def rights(ctx: ToolContext, mode: Mode = "default", whose: str = "", **rules: tuple[str, ...]) -> Rights:
    anchors = Anchors(ctx.root, Path(ctx.env["HOME"]))
    return Rights(RuleBook.of([RuleTexts(source="cli", **rules)], anchors), mode, whose)


async def ask(ctx: ToolContext, command: str, *each: Rights, asks_out: bool = False) -> Decision:
    policy = PermissionPolicy(each or (rights(ctx),))
    args = BashInput(command=command, disable_sandbox=asks_out)
    return await policy.decide(BASH, args, ctx, forced_ask=None)


async def allowed(ctx: ToolContext, command: str, *each: Rights, asks_out: bool = False) -> bool:
    return (await ask(ctx, command, *each, asks_out=asks_out)).behavior == "allow"


# --- what only reads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command", ["ls -la", "cat a.py | head -3", "cat inner/x", "git status", "cd src && ls", "ls *.py"]
)
async def test_what_only_reads_in_the_workspace_needs_no_question(ctx: ToolContext, mode: Mode, command: str) -> None:
    assert await allowed(ctx, command, rights(ctx, mode))


@pytest.mark.parametrize(
    "command", ["cat link/passwd", "cat /etc/passwd", "cat ../x", "ls > a.py", "make", "cat $X", "cat l*/passwd"]
)
async def test_what_leads_out_or_does_more_is_a_question(ctx: ToolContext, command: str) -> None:
    decision = await ask(ctx, command)
    assert (decision.behavior, decision.source) == ("deny", "mode default")
    assert "Nobody is there to be asked" in decision.reason


async def test_a_further_folder_of_the_agent_may_be_read(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    command = f"cat {tmp_path}/data/x"
    assert not await allowed(ctx, command)
    assert await allowed(replace(ctx, extra_dirs=(tmp_path / "data",)), command)


async def test_the_workspace_may_be_read_from_any_folder_in_it(ctx: ToolContext) -> None:
    inside = replace(ctx, cwd=ctx.root / "src")
    assert await allowed(inside, f"cat ../a.py {ctx.root}/a.py")
    assert not await allowed(inside, "cat ../../x")


async def test_git_in_a_planted_repository_is_a_question(ctx: ToolContext) -> None:
    """Its configuration names programs that git would run."""
    for name in ("objects", "refs"):
        (ctx.root / "src" / name).mkdir()
    (ctx.root / "src" / "HEAD").write_text("ref: refs/heads/main\n")
    assert await allowed(ctx, "git status")
    decision = await ask(replace(ctx, cwd=ctx.root / "src"), "git status")
    assert "another repository" in decision.reason
    (ctx.root / "other" / ".git").mkdir(parents=True)
    assert not await allowed(replace(ctx, cwd=ctx.root / "other"), "git log")
    (ctx.root / "plain").mkdir()
    assert await allowed(replace(ctx, cwd=ctx.root / "plain"), "git log")


async def test_a_working_directory_that_is_gone_is_the_workspace(ctx: ToolContext) -> None:
    gone = replace(ctx, cwd=ctx.root / "gone")
    assert await allowed(gone, "cat a.py")
    assert not await allowed(gone, "cat ../x")


# --- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm run build", True),
        ("NODE_ENV=test timeout 5 npm run build | tail -3", True),
        ("npm run build && npm publish", False),
        ("npm run build; rm -rf src", False),
        ("npm run $(x)", False),
        ("npm run build > /etc/x", False),
        ("npm", False),
    ],
)
async def test_prefix_rules_are_held_against_each_part(ctx: ToolContext, command: str, expected: bool) -> None:
    assert await allowed(ctx, command, rights(ctx, allow=("Bash(npm run:*)",))) is expected


async def test_the_winning_rule_and_its_source_are_told(ctx: ToolContext) -> None:
    decision = await ask(ctx, "npm run x", rights(ctx, allow=("Bash(npm *)",)))
    assert decision.source == "cli rule Bash(npm *)"
    decision = await ask(ctx, "echo $(curl x)", rights(ctx, "bypassPermissions", deny=("Bash(curl:*)",)))
    assert decision.reason == "Permission denied for Bash: the cli rule Bash(curl:*) denies it."
    decision = await ask(ctx, "git push", rights(ctx, "bypassPermissions", ask=("Bash(git push:*)",)))
    assert "the cli rule Bash(git push:*) wants to be asked about it" in decision.reason


@pytest.mark.parametrize("mode", MODES)
async def test_deny_comes_before_ask_and_ask_before_allow(ctx: ToolContext, mode: Mode) -> None:
    all_three = {"allow": ("Bash",), "ask": ("Bash(git *)",), "deny": ("Bash(git push:*)",)}
    deny = await ask(ctx, "git push", rights(ctx, mode, **all_three))
    assert deny.source == "cli rule Bash(git push:*)"
    asked = await ask(ctx, "git add a.py", rights(ctx, mode, **all_three))
    assert (asked.behavior, asked.source) == ("deny", "cli rule Bash(git *)")
    assert await allowed(ctx, "make", rights(ctx, mode, **all_three))


async def test_all_sets_of_rights_have_to_allow(ctx: ToolContext) -> None:
    own, parent = rights(ctx, allow=("Bash",)), rights(ctx, whose="lead~1", allow=("Bash(make:*)",))
    assert await allowed(ctx, "make x", own, parent)
    decision = await ask(ctx, "npm test", own, parent)
    assert "(rights of lead~1)" in decision.reason
    denying = rights(ctx, whose="lead~1", allow=("Bash",), deny=("Bash(npm:*)",))
    assert "denies it (rights of lead~1)" in (await ask(ctx, "npm test", own, denying)).reason


async def test_a_rule_for_another_shell_tool_says_nothing_about_bash(ctx: ToolContext) -> None:
    assert not await allowed(ctx, "make", rights(ctx, allow=("PowerShell", "mcp__db__*")))
    assert await allowed(ctx, "ls", rights(ctx, deny=("PowerShell",)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command",
    [
        "retinue land x",
        "tmux ls",
        "/usr/bin/tmux ls",
        "'t'mux ls",
        "t\\mux ls",
        "$'t\\x6dux' ls",
        "t${x}mux ls",
        "/usr/bin/tm?x ls",
        "{tmux,ls}",
        "$(echo tmux) ls",
        "make && ray stop",
        "env A=1 ray stop",
        "sudo -n ray stop",
        "bash -c 'tmux ls'",
        "bash -c tmux",
        "xargs tmux",
        "find . -name x -exec tmux ls +",
        "python -m retinue ps",
        "python3 -mretinue.orchestrator ps",
        "uv run retinue ps",
        "poetry run python -m ray.scripts x",
        "eval tmux ls",
        "a=tmux; $a ls",
        "alias t=tmux; t ls",
        "env -Stmux",
        "echo tmux ls | sh",
        "bash <<E\ntmux ls\nE",
        "bash <<< 'tmux ls'",
        "RETINUE ps",
        ".venv/bin/retinue ps",
        "timeout 5 tmux ls",
        "if true; then tmux ls; fi",
        "f() { tmux ls; }; f",
        "echo `tmux ls`",
        "x='a",
    ],
)
async def test_commands_that_act_for_the_human_are_covered_by_nothing(
    ctx: ToolContext, mode: Mode, command: str
) -> None:
    command = f"{command}; tmux ls" if command == "x='a" else command
    everything = rights(ctx, mode, allow=("Bash", "Bash(*)", "Bash(tmux:*)", f"Bash({command})"))
    decision = await ask(replace(ctx, sandbox=ON), command, everything)
    assert decision.behavior == "deny"
    assert decision.source == "uncovered command"
    assert "could allow it" not in decision.reason


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'retinue: tmux and ray'",
        "make ray",
        "pip install ray",
        "uv add ray",
        "find . -name tmux -exec rm {} +",
        "cat <<E > notes\nretinue\nE",
        "npm run retinue",
        "bash scripts/ray.sh",
        "echo tmux | cat",
    ],
)
async def test_their_names_alone_do_no_harm(ctx: ToolContext, command: str) -> None:
    assert await allowed(ctx, command, rights(ctx, allow=("Bash",)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -rf ~",
        "rm -rf ../..",
        "rm -r /usr && make",
        'rm -rf "$X"/*',
        "echo $(rm -rf /)",
        "bash -c 'rm -rf /'",
        "cd .. && rm -rf tree",
    ],
)
async def test_a_critical_removal_needs_a_person_whatever_is_allowed(
    ctx: ToolContext, mode: Mode, command: str
) -> None:
    decision = await ask(replace(ctx, sandbox=ON), command, rights(ctx, mode, allow=("Bash", f"Bash({command})")))
    assert (decision.behavior, decision.source) == ("deny", "critical removal")
    assert decision.question is not None
    assert decision.question.suggestions == ()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "command",
    [
        "touch .git/hooks/x",
        "echo x > .bashrc",
        "echo x >> src/../.envrc",
        "cp a.py .git/hooks/post-commit",
        "cp a.py .git/hooks",
        "cp -t.git a.py",
        "cp --target=.git a.py",
        "mv .git x",
        "mv src/.vscode .",
        "cp -r src/.husky .",
        "sed -i s/a/b/ .gitconfig",
        "tee .npmrc",
        "cd .git && touch x",
        "for i in 1; do cd .git; touch hooks; echo > .git/x; done",
        "ln -s a.py .git/x",
        "dd if=a.py of=.mcp.json",
        "rm -rf .GIT",
        "env tee .npmrc",
        "bash -c 'touch .envrc'",
    ],
)
async def test_protected_paths_are_changed_by_no_rule_and_no_mode(ctx: ToolContext, mode: Mode, command: str) -> None:
    decision = await ask(replace(ctx, sandbox=ON), command, rights(ctx, mode, allow=("Bash", "Edit")))
    assert (decision.behavior, decision.source) == ("deny", "protected path"), decision.reason


async def test_a_link_to_a_protected_folder_and_a_folder_in_it_are_protected(ctx: ToolContext) -> None:
    (ctx.root / "hooks").symlink_to(".git")
    free = rights(ctx, "bypassPermissions")
    assert (await ask(ctx, "touch hooks/x", free)).source == "protected path"
    assert (await ask(replace(ctx, cwd=ctx.root / ".git"), "touch x", free)).source == "protected path"


async def test_a_text_that_is_too_long_to_look_through_is_a_question_in_every_mode(ctx: ToolContext) -> None:
    text = "; ".join(f"true {n}" for n in range(5_000)) + "; curl x"
    decision = await ask(ctx, text, rights(ctx, "bypassPermissions", deny=("Bash(curl:*)",)))
    assert (decision.behavior, decision.source) == ("deny", "limit")


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p src/x/y",
        "touch src/new",
        "rm -rf src",
        "rm a.py",
        "rmdir src",
        "mv a.py src/",
        "mv -t src a.py",
        "cp -r src copy",
        "sed -i 's/x/y/g' a.py",
        "sed -i.bak -e s/x/y/ a.py",
        "mkdir x && touch x/a && ls x",
        "LANG=C timeout 5 mkdir x",
        "cd src && touch b",
    ],
)
async def test_a_mode_that_accepts_edits_accepts_commands_that_only_edit(ctx: ToolContext, command: str) -> None:
    assert await allowed(ctx, command, rights(ctx, "acceptEdits"))
    assert not await allowed(ctx, command)


@pytest.mark.parametrize(
    "command",
    [
        "touch /etc/x",
        "touch link/x",
        "cp link/passwd .",
        "cp /etc/passwd .",
        "mv a.py ..",
        "mv -t.. a.py",
        "cp --target-directory=/tmp a.py",
        "cp -s a.py b",
        "cp -r src/. .",
        "rm *.py",
        "rm $X",
        "rm {a,b}",
        "touch $(x)",
        "sed -i 's/x/y/w out' a.py",
        "sed -i '1e date' a.py",
        "sed -i'/tmp/*' s/x/y/ a.py",
        "sed -i -f script a.py",
        "sed -i s/x/y/",
        "mkdir x; make",
        "touch a > b",
        "FOO=1 touch a",
        "sudo touch a",
        "chmod +x a.py",
        "cd .. && touch x",
        "touch a &&",
    ],
)
async def test_it_accepts_nothing_else(ctx: ToolContext, command: str) -> None:
    assert not await allowed(ctx, command, rights(ctx, "acceptEdits"))


async def test_the_mode_that_asks_nobody_says_so(ctx: ToolContext) -> None:
    decision = await ask(ctx, "make", rights(ctx, "dontAsk"))
    assert "the mode dontAsk asks nobody" in decision.reason
    assert await allowed(ctx, "make", rights(ctx, "dontAsk", allow=("Bash(make)",)))


async def test_bypass_lets_the_rest_through(ctx: ToolContext) -> None:
    for command in ("make", "curl x | sh", "cat /etc/passwd", "x='a", "$X"):
        assert await allowed(ctx, command, rights(ctx, "bypassPermissions")), command


# --- the sandbox -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["ls", "make"])
async def test_a_sandbox_that_cannot_start_makes_every_command_a_question(
    ctx: ToolContext, mode: Mode, command: str
) -> None:
    broken = replace(ctx, sandbox=SandboxUse("broken", why="no user namespaces", auto_allow=True))
    decision = await ask(broken, command, rights(ctx, mode, allow=("Bash",)))
    assert (decision.behavior, decision.source) == ("deny", "sandbox")
    assert "no user namespaces" in decision.reason
    assert "`retinue doctor`" in decision.reason


async def test_what_the_sandbox_confines_may_be_allowed_by_it(ctx: ToolContext) -> None:
    boxed = replace(ctx, sandbox=ON)
    for command in ("make", "curl x | sh", "for i in 1; do make; done", "python3 x.py > out"):
        decision = await ask(boxed, command)
        assert (decision.behavior, decision.source) == ("allow", "sandbox"), command
    assert not await allowed(replace(ctx, sandbox=SandboxUse("on")), "make")
    assert not await allowed(replace(ctx, sandbox=SandboxUse("off", auto_allow=True)), "make")


async def test_the_sandbox_beats_no_deny_and_no_ask_rule(ctx: ToolContext) -> None:
    boxed = replace(ctx, sandbox=ON)
    strict = rights(ctx, deny=("Bash(curl:*)",), ask=("Bash(git push:*)",))
    for command in ("curl x", "bash -c 'curl x'", "git push", "$X x", "echo 'x"):
        assert not await allowed(boxed, command, strict), command
    assert await allowed(boxed, "make", strict)


async def test_leaving_the_sandbox_is_refused_or_asked_about(ctx: ToolContext) -> None:
    out = BashInput.model_validate({"command": "ls", "dangerouslyDisableSandbox": True})
    boxed = replace(ctx, sandbox=ON)
    refused = await BASH.validate_input(out, boxed)
    assert isinstance(refused, Refused)
    assert "sandbox.allow_unsandboxed" in refused.message
    assert await BASH.validate_input(out, ctx) is None
    may = replace(ctx, sandbox=replace(ON, allow_unconfined=True))
    assert await BASH.validate_input(out, may) is None
    for mode in MODES:
        decision = await ask(may, "ls", rights(ctx, mode), asks_out=True)
        assert (decision.behavior, decision.source) == ("deny", "sandbox"), mode
        assert await allowed(may, "ls", rights(ctx, mode, allow=("Bash(ls:*)",)), asks_out=True)
    assert not await allowed(may, "ls; make", rights(ctx, allow=("Bash(make:*)",)), asks_out=True)
    assert await allowed(ctx, "ls", asks_out=True)


async def test_an_excluded_command_follows_the_rules_as_without_a_sandbox(ctx: ToolContext) -> None:
    boxed = replace(ctx, sandbox=replace(ON, excluded=("docker:*",)))
    assert not await allowed(boxed, "docker run x")
    assert await allowed(boxed, "docker run x", rights(ctx, allow=("Bash(docker:*)",)))
    assert await allowed(boxed, "docker run x && make")


@pytest.mark.parametrize(
    ("command", "outside"),
    [
        ("docker ps", True),
        ("docker ps && docker images", True),
        ("LANG=C timeout 5 docker ps", True),
        ("docker ps | head", False),
        ("docker ps && make", False),
        ("docker ps; $(make)", False),
        ("docker ps > out", False),
        ("X=1 docker ps", False),
        ("docker ps 'a", False),
        ("dockerd", False),
        ("tmux ls", False),
        ("$docker ps", False),
    ],
)
def test_a_command_is_excluded_only_as_a_whole(ctx: ToolContext, command: str, outside: bool) -> None:
    use = replace(ON, excluded=("docker:*", "tmux:*"))
    assert confined(BashInput(command=command), replace(ctx, sandbox=use)) is not outside


def test_who_is_confined(ctx: ToolContext) -> None:
    plain, out = BashInput(command="ls"), BashInput(command="ls", disable_sandbox=True)
    assert confined(plain, replace(ctx, sandbox=ON))
    assert confined(out, replace(ctx, sandbox=ON))
    assert not confined(out, replace(ctx, sandbox=replace(ON, allow_unconfined=True)))
    assert not confined(plain, ctx)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./src/../.env",
        "head -n 3 .env",
        "grep KEY .env",
        "grep -r KEY .",
        "grep -rn KEY",
        "rg KEY",
        "rg KEY src ..",
        "cat .e*",
        "cat .[e]nv",
        "cat {a.py,.env}",
        "cat $X",
        "cat < .env",
        "sed -n 1p .env",
        "cp .env x",
        "cp -r . /tmp/x",
        "tee .env",
        "echo x > .env",
        "bash -c 'cat .env'",
        "sudo cat .env",
        "if true; then cat .env; fi",
        "cd src; cat ../.env",
        "cat alias",
        "xargs cat .env",
        "cat .env 'x",
    ],
)
async def test_a_file_that_may_not_be_read_is_read_by_no_command(ctx: ToolContext, command: str) -> None:
    (ctx.root / "alias").symlink_to(".env")
    decision = await ask(ctx, command, rights(ctx, "bypassPermissions", allow=("Bash",), deny=("Read(.env)",)))
    assert (decision.behavior, decision.source) == ("deny", "cli rule Read(.env)")


@pytest.mark.parametrize(
    "command", ["rm -rf src", "mv src x", "mv -t x src", "chmod -R a-w src", "rm -r *", "cp b src/a"]
)
async def test_a_file_that_may_not_be_changed_is_not_changed_with_its_folder(ctx: ToolContext, command: str) -> None:
    (ctx.root / "src" / "a").touch()
    strict = rights(ctx, "bypassPermissions", deny=("Edit(src/a)",))
    assert (await ask(ctx, command, strict)).source == "cli rule Edit(src/a)"
    assert await allowed(ctx, "cp -r src x", strict)


async def test_a_file_to_be_asked_about_is_asked_about(ctx: ToolContext) -> None:
    careful = rights(ctx, "bypassPermissions", ask=("Read(.env)", "Edit(src/**)"))
    for command, source in (("cat .env", "Read(.env)"), ("rg KEY .", "Read(.env)"), ("touch src/x", "Edit(src/**)")):
        assert (await ask(ctx, command, careful)).source == f"cli rule {source}", command
    for command in ("cat a.py", "cat src/x", "rg KEY src", "touch x"):
        assert await allowed(ctx, command, careful), command


async def test_a_rule_for_all_files_is_one_for_all_commands_that_name_files(ctx: ToolContext) -> None:
    strict = rights(ctx, "bypassPermissions", deny=("Edit",))
    assert not await allowed(ctx, "touch x", strict)
    assert not await allowed(ctx, "make > log", strict)
    assert await allowed(ctx, "make", strict)
    assert await allowed(ctx, "cat a.py", strict)


@pytest.mark.parametrize(
    ("command", "name", "values"),
    [
        ("cat src/a", "Read", {"file_path": "src/a"}),
        ("tee src/a", "Write", {"file_path": "src/a", "content": ""}),
    ],
)
@pytest.mark.parametrize("rule", ["src/**", "/src/a", "a", "~/tree/src/a", "**/a", "b"])
async def test_file_tools_and_commands_agree(
    ctx: ToolContext, command: str, name: str, values: dict[str, str], rule: str
) -> None:
    from retinue.tools.registry.builtin import builtin_tools

    tools: dict[str, AnyTool] = {each.name: each for each in builtin_tools()}
    kind = "Read" if name == "Read" else "Edit"
    one = PermissionPolicy((rights(ctx, "bypassPermissions", deny=(f"{kind}({rule})",)),))
    file_tool = tools[name]
    by_tool = await one.decide(file_tool, file_tool.Input.model_validate(values), ctx, forced_ask=None)
    by_command = await one.decide(BASH, BashInput(command=command), ctx, forced_ask=None)
    assert by_tool.behavior == by_command.behavior


# --- questions -------------------------------------------------------------------------------------------------------


async def test_a_question_carries_rules_warnings_and_numbers(ctx: ToolContext) -> None:
    question = (await ask(ctx, "git push --force > log && npm run x")).question
    assert question is not None
    assert question.source == "mode default"
    assert question.suggestions == ("Bash(git push:*)", "Bash(npm run:*)")
    assert question.warnings == ("may overwrite remote history",)
    assert question.checks == (10,)


async def test_numbers_of_checks_are_not_for_the_model(ctx: ToolContext) -> None:
    reason = (await ask(ctx, "ls > log")).reason
    assert "output redirection" in reason
    assert "10" not in reason


async def test_a_hook_or_a_classifier_answers_only_what_it_may(ctx: ToolContext) -> None:
    yes = Decision("allow", "a hook says so", "hook")
    policy = PermissionPolicy((rights(ctx, ask=("Bash(npm:*)",)),))
    for command, expected in (("make", "allow"), ("npm x", "deny"), ("rm -rf /", "deny"), ("tmux ls", "deny")):
        args = BashInput(command=command)
        decision = await policy.decide(BASH, args, ctx, forced_ask=None, vouched=yes)
        assert decision.behavior == expected, command

    async def says(word: Decision | None) -> Decision | None:
        return word

    for word, expected in ((yes, "allow"), (None, "deny"), (Decision("ask"), "deny"), (Decision("deny", "no"), "deny")):
        args = BashInput(command="make")
        decision = await policy.decide(BASH, args, ctx, forced_ask=None, classifier=says(word))
        assert decision.behavior == expected


async def test_a_disk_that_does_not_answer_makes_it_a_question(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    answers = threading.Event()
    monkeypatch.setattr("retinue.tools.permissions.chain.DISK_S", 0.01)
    monkeypatch.setattr("retinue.tools.shell.disk.Disk.real", lambda self, path: answers.wait() and path)
    try:
        decision = await ask(ctx, "cat a.py", rights(ctx, "bypassPermissions"))
        assert (decision.behavior, decision.source) == ("deny", "slow disk")
        decision = await ask(ctx, "rm -rf /", rights(ctx, "bypassPermissions", deny=("Bash(rm:*)",)))
        assert decision.source == "cli rule Bash(rm:*)"
    finally:
        answers.set()
