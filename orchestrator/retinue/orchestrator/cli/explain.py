"""`explain-command`: what the analysis makes of a shell command, and why."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import JsonValue

    from retinue.tools.shell.analysis.model import Request, Rules, Shell, Verdict

USAGE = 2


def explain_command(
    command: Annotated[str | None, typer.Argument(metavar="CMD", help="The command, as one argument.")] = None,
    shell: Annotated[str, typer.Option(help="bash or zsh.")] = "bash",
    allow: Annotated[list[str] | None, typer.Option(help="An allow rule, as in Bash(npm test:*).")] = None,
    ask: Annotated[list[str] | None, typer.Option(help="An ask rule.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="A deny rule.")] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=TARGET", help="Take PATH for a symbolic link, whatever the disk says."),
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Read one JSON object a line, answer one a line.")] = False,
) -> None:
    """Say whether a shell command would run unasked, and why. Runs nothing.

    Example:

    retinue explain-command 'git log --oneline | head -5'
    """
    from retinue.tools.shell.analysis.analyse import analyse
    from retinue.tools.shell.analysis.model import Rules

    if jsonl:
        answer_lines(_links(link or []))
        return
    if command is None or shell not in ("bash", "zsh"):
        output.note("explain-command needs a command in quotes, or --jsonl; --shell is bash or zsh")
        raise typer.Exit(USAGE)
    cwd, home = os.getcwd(), os.path.expanduser("~")
    rules = Rules(tuple(allow or ()), tuple(ask or ()), tuple(deny or ()))
    known: Shell = "zsh" if shell == "zsh" else "bash"
    request = ToldDisk(_links(link or []), cwd, home, known).request(command, cwd, home, known, rules)
    output.say(*_lines(analyse(request)))


def _lines(verdict: Verdict) -> list[str]:
    from retinue.tools.shell.analysis.advice import suggested_rules, warnings_of
    from retinue.tools.shell.analysis.checks import Check

    lines = [f"verdict: {verdict.outcome}" + (f", by the rule {verdict.rule}" if verdict.rule else "")]
    others = [reason.text for reason in verdict.reasons if not reason.check]
    hits = {reason.check: reason.text for reason in verdict.reasons if reason.check}
    if reasons := [*others, *hits.values()]:
        lines += ["", "why it is not simply approved:", *(f"  {text}" for text in reasons)]
    lines += ["", "commands, as the shell would run them:"]
    for part in verdict.parts:
        words = " ".join(json.dumps(word.value, ensure_ascii=False) for word in (*part.assignments, *part.words))
        redirects = "".join(f" {fd}{operator}{target}" for fd, operator, target in part.raw.redirects)
        lines.append(f"  {part.raw.connector.strip() or ' ':2} {words}{redirects}")
    lines += ["", "checks:"]
    found = [
        f"  {check.value:2} {check.name.lower().replace('_', ' ')}: {hits[check.value]}"
        for check in Check
        if check.value in hits
    ]
    lines += [*found, f"  the {'other ' if found else ''}{len(Check) - len(found)} found nothing"]
    if warnings := warnings_of(verdict):
        lines += ["", "warnings:", *(f"  {text}" for text in warnings)]
    rules = suggested_rules(verdict)
    if rules is None:
        lines += ["", "no rule is offered for it"]
    elif rules:
        lines += ["", "rules that would make the question needless:", *(f"  {rule}" for rule in rules)]
    return lines


def answer_lines(links: Mapping[str, str]) -> None:
    """One answer for each line, in order, each as soon as it is known."""
    for line in sys.stdin:
        if line.strip():
            sys.stdout.write(json.dumps(_answer(line, links), separators=(",", ":")) + "\n")
            sys.stdout.flush()


def _answer(line: str, links: Mapping[str, str]) -> dict[str, JsonValue]:
    from retinue.tools.shell.analysis.analyse import analyse
    from retinue.tools.shell.analysis.exit_codes import is_error

    try:
        asked = _object(json.loads(line))
        request = _request(asked, links)
    except (ValueError, TypeError) as wrong:
        return {"id": None, "verdict": "ask", "reasons": [{"kind": "input", "check": 0, "text": str(wrong)}]}
    verdict = analyse(request)
    answer: dict[str, JsonValue] = {"id": asked.get("id"), **_json(verdict)}
    exit_code = asked.get("exit_code")
    if isinstance(exit_code, int):
        answer["is_error"] = is_error(verdict.parts, exit_code)
    return answer


def _object(asked: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(asked, dict):
        raise TypeError('a line is one JSON object, as in {"id": 1, "command": "ls"}')
    if not isinstance(asked.get("command"), str):
        raise TypeError('"command" is missing, or is no text')
    return asked


def _request(asked: dict[str, JsonValue], links: Mapping[str, str]) -> Request:
    from retinue.tools.shell.analysis.model import Rules

    cwd, home = str(asked.get("cwd") or os.getcwd()), str(asked.get("home") or os.path.expanduser("~"))
    rules = asked.get("rules", {})
    if not isinstance(rules, dict):
        raise TypeError("rules is no object")
    told = asked.get("links", {})
    if not isinstance(told, dict):
        raise TypeError("links is no object")
    links = {**links, **{path: str(target) for path, target in told.items()}}
    lists = {key: tuple(str(text) for text in _list(rules.get(key))) for key in ("allow", "ask", "deny")}
    shell: Shell = "zsh" if asked.get("shell") == "zsh" else "bash"
    return ToldDisk(links, cwd, home, shell).request(str(asked["command"]), cwd, home, shell, Rules(**lists))


def _list(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError("a list of rules was expected")
    return value


def _json(verdict: Verdict) -> dict[str, JsonValue]:
    from retinue.tools.shell.analysis.advice import display_class, suggested_rules, warnings_of

    rules = suggested_rules(verdict)
    return {
        "verdict": verdict.outcome,
        "status": verdict.status,
        "reasons": [{"kind": kind, "check": check, "text": text} for kind, check, text in verdict.reasons],
        "parts": [
            {
                "assignments": [word.value for word in part.assignments],
                "argv": [word.value for word in part.words],
                "redirects": ["".join(redirect) for redirect in part.raw.redirects],
                "connector": part.raw.connector,
            }
            for part in verdict.parts
        ],
        "suggest": None if rules is None else list(rules),
        "class": display_class(verdict),
        "warnings": list(warnings_of(verdict)),
        "rule": verdict.rule,
    }


def _links(told: Iterable[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in told)
    return {path: target for path, _, target in pairs}


class ToldDisk:
    """The disk of this machine, with links that were told besides those that it has. Never raises."""

    def __init__(self, links: Mapping[str, str], cwd: str, home: str, shell: Shell = "bash") -> None:
        from retinue.tools.shell.disk import Disk

        self._disk = Disk(Path(cwd), shell)
        self._told: dict[str, str] = {}
        for path, target in links.items():
            named = os.path.normpath(os.path.join(cwd, path))
            self._told[named] = home + target[1:] if target.startswith("~") else os.path.join(cwd, target)

    def real(self, path: str) -> str:
        for link, target in self._told.items():
            if path == link or path.startswith(f"{link}/"):
                path = target + path[len(link) :]
        return self._disk.real(path)

    def expand(self, pattern: str) -> Iterator[str | None]:
        """Also the told links that the glob would find, or look into."""
        from fnmatch import fnmatchcase

        for link in self._told:
            head = "/".join(pattern.split("/")[: link.count("/") + 1])
            if link.count("/") <= pattern.count("/") and fnmatchcase(link, head):
                yield link
        yield from self._disk.expand(pattern)

    def request(self, command: str, cwd: str, home: str, shell: Shell, rules: Rules) -> Request:
        """The command, to be judged on this disk."""
        from retinue.tools.shell.analysis.model import Request

        disk = self._disk
        return Request(command, cwd, home, shell, (), rules, self.real, self.expand, disk.below, disk.ours)


def register(app: typer.Typer) -> None:
    app.command("explain-command")(explain_command)
