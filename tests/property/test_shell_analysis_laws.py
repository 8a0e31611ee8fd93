"""Laws of the analysis of shell commands, over any text and over commands made from a grammar."""

from __future__ import annotations

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from retinue.tools.shell.analysis.advice import display_class, suggested_rules, warnings_of
from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.checks import run_checks
from retinue.tools.shell.analysis.exit_codes import is_error
from retinue.tools.shell.analysis.model import Request, Rules, Shell, Verdict
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.reading import read

GROSS_SECONDS = 1.0
"""Twenty times the bound that the benchmark measures: a busy machine must not fail the law."""
ORDER = {"read-only": 0, "allow": 1, "ask": 2, "hard-stop": 3, "deny": 4}

PIECE_TEXT = """ls rm git log find sed jq echo -rf -n -e -exec -delete -- / ~ . .. a src /etc 'a "a" 'b' "c" $X ${X}
    $(x) `x` ; & && || | |& > >> < << <<< <<E E 2>&1 >/dev/null ( ) { } [ ] [[ ]] ! # \\ \\; if then fi for do done
    case esac in function time coproc == =~ =ls {a,b} * ? $'x' eval exec xargs sudo bash -c
    cd timeout 5 LANG=C X=1 nohup test printf %n %d head -5 sort uniq tar tf"""
PIECES = st.sampled_from([*PIECE_TEXT.split(), "\r", "\x0b", "\x00", "\u00a0", "\ufeff"])
JOINS = st.sampled_from(["", " ", " ", " ", "\n", "\t", "\\\n", ";"])
MIXED = st.lists(st.tuples(PIECES, JOINS), max_size=25).map(lambda pairs: "".join(a + b for a, b in pairs))
TEXTS = st.one_of(st.text(max_size=300), MIXED)

READERS = st.sampled_from(
    ["ls -la", "cat a", "git status", "rg -n foo src", "wc -l a b", "echo 'x; y'", "find . -name '*.py'"]
)
OTHERS = st.sampled_from(
    ["make", "npm test", "touch a", "ls > x", "curl x", "rm -rf /", "rm -rf ~", "git push", "ls $(x)"]
)
PARTS = st.one_of(READERS, OTHERS)
LINKS = st.sampled_from([" && ", " || ", "; ", " | "])
RULES = st.builds(
    Rules,
    allow=st.lists(st.sampled_from(["Bash(make:*)", "Bash(npm *)", "Bash", "Bash(git push)"]), max_size=2).map(tuple),
    ask=st.lists(st.sampled_from(["Bash(git:*)", "Bash(touch *)"]), max_size=1).map(tuple),
    deny=st.lists(st.sampled_from(["Bash(curl:*)", "Bash(rm:*)", "Read(src/**)"]), max_size=1).map(tuple),
)
SHELLS: st.SearchStrategy[Shell] = st.sampled_from(["bash", "zsh"])


def judge(command: str, rules: Rules | None = None, shell: Shell = "bash") -> Verdict:
    return analyse(Request(command, "/home/me/tree", "/home/me", shell, (), rules or Rules()))


@settings(deadline=None)  # it has a bound of its own
@given(TEXTS, RULES, SHELLS)
@example("\ud800", Rules(), "bash")
@example("'" * 500, Rules(), "bash")
@example("(" * 5_000, Rules(), "bash")
@example("${" * 5_000, Rules(), "bash")
@example("<<A " * 2_500, Rules(), "bash")
@example("\\" * 9_999, Rules(), "bash")
@example("{a," * 3_000, Rules(), "bash")
@example("rm -rf " + "{a,b}" * 1_000, Rules(), "bash")
@example("bash -c '" + "rm x;" * 1_900 + "'", Rules(deny=("Bash(y)",)), "bash")
@example("sudo " * 1_900 + "rm /", Rules(deny=("Bash(y)",)), "bash")
@example("a&" * 5_000, Rules(deny=("Bash(y)",)), "bash")
@example("/proc/" * 1_600, Rules(), "bash")
@example('"' + "$" * 9_000 + '"', Rules(), "bash")
@example("git " * 2_400, Rules(), "bash")
def test_no_text_raises_or_takes_long(text: str, rules: Rules, shell: Shell) -> None:
    start = time.perf_counter()
    verdict = judge(text, rules, shell)
    suggested_rules(verdict)
    display_class(verdict)
    warnings_of(verdict)
    is_error(verdict.parts, 1)
    assert time.perf_counter() - start < GROSS_SECONDS


@given(TEXTS, SHELLS)
def test_only_a_simple_text_without_a_hit_is_read_only(text: str, shell: Shell) -> None:
    verdict = judge(text, shell=shell)
    if verdict.outcome == "read-only":
        assert verdict.status == "simple"
        assert not verdict.checks
        assert verdict.parts


@given(st.lists(PARTS, min_size=1, max_size=4), PARTS, LINKS, RULES)
def test_a_further_part_never_makes_a_verdict_milder(parts: list[str], more: str, link: str, rules: Rules) -> None:
    before = judge(link.join(parts), rules)
    after = judge(link.join([*parts, more]), rules)
    assert ORDER[after.outcome] >= ORDER[before.outcome]


@given(st.lists(PARTS, min_size=1, max_size=4), LINKS, RULES)
def test_a_list_is_no_milder_than_its_worst_part(parts: list[str], link: str, rules: Rules) -> None:
    whole = judge(link.join(parts), rules)
    assert ORDER[whole.outcome] >= max(ORDER[judge(part, rules).outcome] for part in parts)


@given(TEXTS, st.lists(st.sampled_from(["Bash(curl:*)", "Bash(ls *)", "Bash(a)", "Bash(rm:*)"]), min_size=1).map(tuple))
def test_a_further_deny_rule_never_makes_a_verdict_milder(text: str, deny: tuple[str, ...]) -> None:
    assert ORDER[judge(text, Rules(deny=deny)).outcome] >= ORDER[judge(text).outcome] or judge(text).outcome == "ask"


@given(st.text(st.characters(codec="utf-8", exclude_characters="'\n", exclude_categories=["C", "Z"]), max_size=40))
def test_a_literal_in_single_quotes_raises_nothing(text: str) -> None:
    verdict = judge(f"echo x'{text}'")
    assert not {number for number in verdict.checks if number != 18}
    assert verdict.outcome == "read-only" or verdict.checks == {18}


@given(st.text(st.characters(codec="utf-8", exclude_characters="'\x00"), max_size=60))
def test_single_quotes_keep_a_text_as_it_is(text: str) -> None:
    assert resolve(f"'{text}'").value == text


@given(st.lists(READERS, min_size=1, max_size=6), LINKS)
def test_readers_together_are_as_free_as_each(parts: list[str], link: str) -> None:
    assert judge(link.join(parts)).outcome == "read-only"


@given(TEXTS)
def test_checks_come_once_and_in_order(text: str) -> None:
    found = [hit.check for hit in run_checks(text, read(text).parts)]
    assert found == sorted(set(found))


@given(MIXED, RULES)
def test_the_same_command_is_always_judged_alike(text: str, rules: Rules) -> None:
    assert judge(text, rules) == judge(text, rules)
