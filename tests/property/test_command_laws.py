"""Laws of permissions for commands, over commands made from a grammar and nested in what else a shell runs."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from retinue.tools.base import Behavior, Decision
from retinue.tools.permissions.commands import UNCOVERED
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.permissions.shell import CommandCase, decide_command
from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.case import survey
from retinue.tools.shell.analysis.model import Request, Rules
from retinue.tools.shell.bash.confinement import is_confined
from retinue.tools.shell.sandbox.policy import SandboxUse
from support.calls import tool

ROOT, HOME = "/home/me/tree", "/home/me"
ANCHORS = Anchors(Path(ROOT), Path(HOME))
BASH = tool("Bash")
STRICTNESS: list[Behavior] = ["allow", "ask", "deny"]

MODES: st.SearchStrategy[Mode] = st.sampled_from(["default", "acceptEdits", "dontAsk", "bypassPermissions"])
SANDBOXES = st.builds(
    SandboxUse,
    st.sampled_from(["on", "off", "broken"]),
    auto_allow=st.booleans(),
    allow_unconfined=st.booleans(),
    excluded=st.sampled_from([(), ("docker:*", "curl:*")]),
)
SIMPLE = st.sampled_from(
    [
        "ls -la",
        "cat a",
        "git status",
        "make all",
        "npm run x",
        "touch a",
        "mkdir -p d",
        "rm a",
        "sed -i s/a/b/ f",
        "curl x",
        "docker ps",
        "git push",
        "cp a b",
        "echo x > out",
        "cat .env",
        "tee b",
        "rg x .",
        "rm -rf /",
        "tmux ls",
        "echo > .bashrc",
        "$X y",
        "FOO=1 make",
        "cd d",
        "cd .git",
    ]
)
JOINS = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & "])
LISTS = st.lists(st.tuples(SIMPLE, JOINS), min_size=1, max_size=4).map(
    lambda pairs: "".join(text + join for text, join in pairs[:-1]) + pairs[-1][0]
)
NESTS = st.sampled_from(
    [
        "{}",
        "timeout 5 {}",
        "nice -n 5 {}",
        "sudo -n {}",
        "env A=1 {}",
        "A=1 {}",
        "A='1 2' B= {}",
        "time {}",
        "! {}",
        "exec {}",
        "nohup {} &",
        "setsid {}",
        "xargs -n1 {}",
        "find . -exec {} +",
        "ls && {}",
        "make; {}",
        "{} | cat",
        "ls |& {}",
        "{} > out 2>&1",
        "( {} )",
        "{{ {}; }}",
        "if {}; then :; fi",
        "if true; then {}; fi",
        "while {}; do :; done",
        "for x in a b; do {}; done",
        "f() {{ {}; }}; f",
        "case a in a) {};; esac",
        "echo $({})",
        "echo `{}`",
        'echo "$({})"',
        "cat <({})",
        "cat <<E\n$({})\nE",
        "ls\n{}",
        "bash -c '{}'",
        "eval '{}'",
        "ls 'unclosed; {}",
    ]
)
SPELLINGS = st.sampled_from(["curl x", "/usr/bin/curl x", "cu'r'l x", "cu\\rl x", '"curl" x', "curl"])
ALLOWS = st.lists(
    st.sampled_from(["Bash", "Bash(*)", "Bash(curl:*)", "Bash(make:*)", "Bash(git *)", "Edit", "Read"]), max_size=3
).map(tuple)
STRICT = st.lists(
    st.sampled_from(
        ["Bash(git:*)", "Bash(make *)", "Bash(curl:*)", "Bash(rm:*)", "Read(.env)", "Edit(out)", "Bash(* x)", "Bash"]
    ),
    max_size=3,
).map(tuple)


def book(allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> RuleBook:
    return RuleBook.of([RuleTexts("spec", allow, ask, deny)], ANCHORS)


def decide(
    text: str, rules: RuleBook, mode: Mode = "default", use: SandboxUse | None = None, *, out: bool = False
) -> Decision:
    use = use or SandboxUse()
    confined = is_confined(text, use, asks_out=out)
    asks_out = out and use.state == "on"
    case = CommandCase(survey(Request(text, ROOT, HOME)), use, confined=confined, asks_out=asks_out)
    return decide_command(case, BASH, rules, mode)


def strictness(decision: Decision) -> int:
    return STRICTNESS.index(decision.behavior)


@given(SPELLINGS, st.lists(NESTS, max_size=3), MODES, ALLOWS, SANDBOXES, st.booleans())
def test_deny_beats_everything_at_every_depth(
    denied: str, nests: list[str], mode: Mode, allow: tuple[str, ...], use: SandboxUse, out: bool
) -> None:
    text = denied
    for nest in nests:
        assume(not ("'" in nest and "'" in text))  # quotes in quotes would end them
        text = nest.format(text)
    assert decide(text, book(allow, deny=("Bash(curl:*)",)), mode, use, out=out).behavior == "deny", text


@given(LISTS, MODES, ALLOWS, STRICT, STRICT, STRICT, SANDBOXES)
def test_a_further_deny_or_ask_rule_never_makes_a_decision_laxer(
    text: str,
    mode: Mode,
    allow: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    more: tuple[str, ...],
    use: SandboxUse,
) -> None:
    before = strictness(decide(text, book(allow, ask, deny), mode, use))
    assert strictness(decide(text, book(allow, ask, (*deny, *more)), mode, use)) >= before
    assert strictness(decide(text, book(allow, (*ask, *more), deny), mode, use)) >= before


@given(LISTS, MODES, ALLOWS, ALLOWS, STRICT, STRICT, SANDBOXES)
def test_a_further_allow_rule_never_makes_a_decision_stricter(
    text: str,
    mode: Mode,
    allow: tuple[str, ...],
    more: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    use: SandboxUse,
) -> None:
    before = strictness(decide(text, book(allow, ask, deny), mode, use))
    assert strictness(decide(text, book((*allow, *more), ask, deny), mode, use)) <= before


@given(LISTS, MODES, ALLOWS, STRICT, STRICT)
def test_a_sandbox_that_allows_answers_only_what_no_rule_speaks_of(
    text: str, mode: Mode, allow: tuple[str, ...], ask: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    rules = book(allow, ask, deny)
    plain = decide(text, rules, mode)
    boxed = decide(text, rules, mode, SandboxUse("on", auto_allow=True))
    assert boxed == plain or (boxed.source == "sandbox" and plain.source.startswith("mode "))


@given(LISTS, MODES, ALLOWS, SANDBOXES)
def test_what_needs_a_person_is_allowed_by_nothing(
    text: str, mode: Mode, allow: tuple[str, ...], use: SandboxUse
) -> None:
    needs_a_person = "rm -rf /" in text or "tmux" in text or ".bashrc" in text
    assume(needs_a_person)
    decision = decide(text, book(allow), mode, use)
    assert decision.behavior == ("deny" if mode == "dontAsk" else "ask")
    assert decision.firm
    assert decision.question is not None
    assert not decision.question.suggestions


@given(LISTS, MODES, SANDBOXES)
def test_a_sandbox_that_cannot_start_lets_nothing_through(text: str, mode: Mode, use: SandboxUse) -> None:
    broken = SandboxUse("broken", "why", use.auto_allow, use.allow_unconfined, use.excluded)
    assert decide(text, book(("Bash",)), mode, broken).behavior != "allow"


@given(LISTS)
def test_suggested_rules_make_the_question_needless(text: str) -> None:
    decision = decide(text, book())
    question = decision.question
    assume(question is not None and question.suggestions)
    assert question is not None
    assert len(question.suggestions) <= 5
    again = decide(text, book(question.suggestions))
    reached = survey(Request(text, ROOT, HOME))
    hidden = any(reason.check for reason in reached.hits) or "cd " in text
    assert again.behavior == "allow" or hidden


WORDS = st.sampled_from(
    [
        "ls",
        "cat",
        "a",
        "src",
        "-n",
        "curl",
        "/usr/bin/curl",
        "git",
        "status",
        "grep",
        "x",
        "A=1",
        "head",
        "-5",
        "sort",
        "wc",
        "find",
        ".",
        "-name",
    ]
)
PLAIN = st.lists(st.one_of(WORDS, st.sampled_from(["|", "&&", ";", "||", "\n", "&"])), min_size=1, max_size=14).map(
    " ".join
)
_SEPARATORS = re.compile(r"&&|\|\||[;|&\n]")


def coarse_programs(text: str) -> set[str]:
    """The first word of each piece of a text without quotes, behind assignments: nothing of a shell is understood."""
    pieces = (piece.split() for piece in _SEPARATORS.split(text))
    behind = ([word for word in words if "=" not in word] for words in pieces)
    return {words[0].rsplit("/", 1)[-1] for words in behind if words}


@given(PLAIN, st.data())
def test_nothing_is_read_only_that_a_coarse_reading_of_a_deny_rule_forbids(text: str, data: st.DataObject) -> None:
    programs = sorted(coarse_programs(text))
    assume(programs)
    rules = Rules(deny=(f"Bash({data.draw(st.sampled_from(programs))}:*)",))
    assert analyse(Request(text, ROOT, HOME, rules=rules)).outcome == "deny"


@given(st.one_of(LISTS, PLAIN), NESTS)
def test_both_shells_are_judged_alike_but_for_what_only_one_has(text: str, nest: str) -> None:
    assume(not ("'" in nest and "'" in text))
    nested = nest.format(text)
    bash, zsh = (analyse(Request(nested, ROOT, HOME, shell)) for shell in ("bash", "zsh"))
    assert bash == zsh


@given(st.sampled_from(sorted(UNCOVERED)), st.lists(NESTS, max_size=2), MODES)
def test_no_nesting_hides_a_command_of_the_human(name: str, nests: list[str], mode: Mode) -> None:
    text = f"{name} ls"
    for nest in nests:
        assume(not ("'" in nest and "'" in text))
        text = nest.format(text)
    assert decide(text, book(("Bash",)), mode, SandboxUse("on", auto_allow=True)).behavior != "allow", text
