"""Laws of the permission rules."""

from __future__ import annotations

from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from retinue.tools.base import Behavior, Decision, NameSubject, PathSubject
from retinue.tools.permissions.decide import MODES, Case, decide
from retinue.tools.permissions.rules import Anchors, ResolvedPath, Rule, RuleBook, RuleTexts, path_matcher
from support.calls import tool

ROOT, HOME = Path("/srv/tree"), Path("/home/me")
ANCHORS = Anchors(ROOT, HOME)

NAMES = st.sampled_from(["a", "b", "src", "lib", "a.py", "b.txt", ".env"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(["a", "b", "src", "lib", "*.py", "*", "**", ".env", "?", "[ab]"])
PATTERNS = st.tuples(
    st.sampled_from(["", "/"]), st.lists(PARTS, min_size=1, max_size=4), st.sampled_from(["", "/"])
).map(lambda t: t[0] + "/".join(t[1]) + t[2])
RULES = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from(["Bash", "Edit", "Read"]),
    st.one_of(st.none(), st.just("x")),
    st.sampled_from(["user", "project", "local", "flag", "policy", "spec", "cli", "command", "session"]),
)
CASES = st.builds(
    Case,
    mode=st.sampled_from(MODES),
    deny=st.none(),
    ask=st.one_of(st.none(), st.just(Rule("ask", "Bash"))),
    allow=st.one_of(st.none(), st.just(Rule("allow", "Bash")), st.just(Rule("allow", "Bash", "x"))),
    tool_says=st.one_of(st.none(), st.sampled_from([Decision("allow"), Decision("ask"), Decision("deny")])),
    forced_ask=st.one_of(st.none(), st.just("why")),
    read_only=st.booleans(),
    touches=st.sampled_from(["read", "write", "network", "other"]),
    outside=st.booleans(),
    protected=st.one_of(st.none(), st.just(".git")),
)
STRICTNESS: list[Behavior] = ["allow", "ask", "deny"]


@given(CASES)
def test_deny_beats_everything(case: Case) -> None:
    from dataclasses import replace

    assert decide(replace(case, deny=Rule("deny", "Bash"))).behavior == "deny"


@given(CASES)
def test_an_ask_rule_a_doubt_and_protection_are_never_approved(case: Case) -> None:
    asked = case.ask or case.forced_ask is not None or (case.protected and case.touches == "write")
    assume(asked)
    assert decide(case).behavior != "allow"


@given(CASES)
def test_taking_an_allow_rule_away_never_makes_a_decision_milder(case: Case) -> None:
    from dataclasses import replace

    with_rule, without = decide(case), decide(replace(case, allow=None))
    assert STRICTNESS.index(without.behavior) >= STRICTNESS.index(with_rule.behavior)


@given(CASES)
def test_the_mode_that_asks_nobody_never_asks(case: Case) -> None:
    from dataclasses import replace

    assert decide(replace(case, mode="dontAsk")).behavior != "ask"


@given(PATTERNS, PATHS)
def test_allow_rules_agree_with_gitignore(pattern: str, path: str) -> None:
    fits = path_matcher(pattern, "allow", ANCHORS)
    assert fits(str(ROOT / path), False) is GitIgnoreSpec.from_lines([pattern]).match_file(path)


@given(PATTERNS, PATHS)
def test_a_deny_rule_covers_at_least_what_an_allow_rule_would(pattern: str, path: str) -> None:
    denied, allowed = path_matcher(pattern, "deny", ANCHORS), path_matcher(pattern, "allow", ANCHORS)
    assert denied(str(ROOT / path), True) or not allowed(str(ROOT / path), False)


@given(PATTERNS, PATHS, st.sampled_from(["allow", "ask", "deny"]))
def test_the_base_of_a_source_moves_what_begins_with_a_slash_and_nothing_else(
    pattern: str, path: str, behavior: Behavior
) -> None:
    base = Path("/home/me/.claude")
    moved = path_matcher(pattern, behavior, ANCHORS, base)
    there = path_matcher(pattern, behavior, Anchors(base if pattern.startswith("/") else ROOT, HOME))
    for folder in (base, ROOT):
        assert moved(str(folder / path), False) is there(str(folder / path), False)


@given(PATTERNS, PATHS)
def test_anchors_move_a_pattern_and_change_nothing_else(pattern: str, path: str) -> None:
    rooted = "/" + pattern.lstrip("/")
    spec = GitIgnoreSpec.from_lines([rooted])
    for prefix, base in (("/", Path("/")), ("~", HOME), ("", ROOT)):
        assert path_matcher(prefix + rooted, "allow", ANCHORS)(str(base / path), False) is spec.match_file(path)


@given(PATTERNS, PATHS)
def test_no_rule_of_the_workspace_reaches_out_of_it(pattern: str, path: str) -> None:
    assume(not pattern.startswith(("//", "~")))
    assert not path_matcher(pattern, "deny", ANCHORS)(f"/elsewhere/{path}", True)


@given(PATTERNS, PATHS, PATHS)
def test_a_link_is_never_treated_milder_than_its_two_ends(pattern: str, named: str, real: str) -> None:
    link = ResolvedPath(ROOT / named, ROOT / real)
    reader, subject = tool("Read"), PathSubject(ROOT / named, write=False)

    def hit(behavior: Behavior, path: ResolvedPath) -> bool:
        book = RuleBook.of([RuleTexts(**{behavior: (f"Read({pattern})",)})], ANCHORS)
        return book.first(behavior, reader, subject, path) is not None

    ends = [ResolvedPath(end, end) for end in (link.named, link.real)]
    assert hit("deny", link) == any(hit("deny", end) for end in ends)
    assert hit("allow", link) == all(hit("allow", end) for end in ends)


@given(st.lists(RULES, max_size=5), st.sampled_from([NameSubject("x"), NameSubject()]))
def test_a_rule_speaks_of_its_own_tool_alone(rules: list[Rule], subject: NameSubject) -> None:
    book = RuleBook(tuple(rules), ANCHORS)
    assert all(book.first(behavior, tool("Other"), subject, None) is None for behavior in STRICTNESS)
