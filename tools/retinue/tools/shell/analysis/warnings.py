"""What a person should know before saying yes. Information only: no verdict hangs on it. Pure."""

from __future__ import annotations

import re

from retinue.tools.shell.analysis.model import MAX_CHARS

_GIT = r"\bgit\b(?:[^;&|\n])*?\b"
_WARNINGS: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = tuple(
    (tuple(needles.split()), re.compile(pattern, re.IGNORECASE), text)
    for needles, pattern, text in (
        ("reset", rf"{_GIT}reset\b[^;&|\n]*--hard", "may discard uncommitted changes"),
        ("checkout", rf"{_GIT}checkout\b[^;&|\n]*\s(?:--\s|\.(?:\s|$))", "may discard uncommitted changes"),
        ("restore", rf"{_GIT}restore\b(?![^;&|\n]*--staged)", "may discard uncommitted changes"),
        ("clean", rf"{_GIT}clean\b[^;&|\n]*\s-\w*f", "may delete files that git does not know"),
        (
            "push",
            rf"{_GIT}push\b[^;&|\n]*(?:\s--force(?!-with-lease)\b|\s-\w*f\b|\s\+\w)",
            "may overwrite remote history",
        ),
        ("push", rf"{_GIT}push\b[^;&|\n]*\s--force-with-lease", "may overwrite remote history"),
        ("push", rf"{_GIT}push\b[^;&|\n]*(?:\s--delete\b|\s:\w)", "may delete a remote branch"),
        ("--no-verify", rf"{_GIT}(?:commit|push|merge|rebase)\b[^;&|\n]*--no-verify", "may skip safety hooks"),
        ("--amend", rf"{_GIT}commit\b[^;&|\n]*--amend", "may rewrite the last commit"),
        ("filter rebase", rf"{_GIT}(?:filter-branch|filter-repo|rebase)\b", "may rewrite history"),
        ("stash", rf"{_GIT}stash\s+(?:drop|clear)", "may discard stashed changes"),
        ("branch", rf"{_GIT}branch\b[^;&|\n]*\s-\w*D", "may delete a branch that is not merged"),
        ("reflog gc", rf"{_GIT}(?:reflog\s+expire|gc\b[^;&|\n]*--prune)", "may remove the way back to lost commits"),
        (
            "rm",
            r"\brm\b[^;&|\n]*\s-\w*(?:r\w*f|f\w*r)|\brm\b[^;&|\n]*\s-\w*r[^;&|\n]*\s-\w*f"
            r"|\brm\b[^;&|\n]*\s-\w*f[^;&|\n]*\s-\w*r|\brm\b[^;&|\n]*--recursive[^;&|\n]*--force",
            "may recursively force-remove files",
        ),
        ("rm", r"\brm\b[^;&|\n]*\s(?:-\w*r|--recursive)", "may recursively remove files"),
        ("-delete", r"\bfind\b[^;&|\n]*\s-delete\b", "may delete every file that is found"),
        (
            "drop truncate",
            r"\b(?:DROP|TRUNCATE)\s+(?:TABLE|DATABASE|SCHEMA|INDEX|VIEW)\b|\bTRUNCATE\s+\w",
            "may drop or truncate database objects",
        ),
        ("delete", r"\bDELETE\s+FROM\s+[\w.\"`]+\s*(?:;|[\"']|$)", "may delete all rows"),
        ("kubectl", r"\bkubectl\b[^;&|\n]*\bdelete\b", "may delete Kubernetes resources"),
        ("helm", r"\bhelm\b[^;&|\n]*\b(?:uninstall|delete)\b", "may delete Kubernetes resources"),
        ("terraform", r"\bterraform\b[^;&|\n]*(?:\bdestroy\b|\s-destroy\b)", "may destroy Terraform infrastructure"),
        ("destroy", r"\b(?:pulumi|cdk|tofu)\b[^;&|\n]*\bdestroy\b", "may destroy infrastructure"),
        (
            "docker",
            r"\bdocker\b[^;&|\n]*\b(?:prune|rm|rmi|down\b[^;&|\n]*-v)\b",
            "may delete containers or volumes",
        ),
        ("aws", r"\baws\b[^;&|\n]*\bs3\b[^;&|\n]*\b(?:rm|rb)\b", "may delete stored objects"),
        (
            "mkfs wipefs shred fdisk parted",
            r"\b(?:mkfs(?:\.\w+)?|wipefs|shred|fdisk|parted)\b",
            "may destroy the data of a disk",
        ),
        ("of=/dev/", r"\bdd\b[^;&|\n]*\bof=/dev/", "may destroy the data of a disk"),
        ("chmod chown", r"\bch(?:mod|own)\b[^;&|\n]*\s(?:-\w*R|--recursive)", "may change the rights of many files"),
        ("shutdown reboot halt poweroff", r"\b(?:shutdown|reboot|halt|poweroff)\b", "may stop the machine"),
    )
)

_HINT = re.compile(
    "|".join(sorted({re.escape(needle) for needles, _, _ in _WARNINGS for needle in needles})), re.IGNORECASE
)


def warnings_for(command: str) -> tuple[str, ...]:
    """Each warning once, in the order of the table; of a text that nobody reads, from its beginning."""
    command = command[:MAX_CHARS]
    if _HINT.search(command) is None:
        return ()
    lowered = command.lower()
    hits = [
        text
        for needles, pattern, text in _WARNINGS
        if any(needle in lowered for needle in needles) and pattern.search(command)
    ]
    return tuple(dict.fromkeys(hits))
