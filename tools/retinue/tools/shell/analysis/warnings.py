"""What a person should know before saying yes. Information only: no verdict hangs on it. Pure."""

from __future__ import annotations

import re

_GIT = r"\bgit\b(?:[^;&|\n])*?\b"
_WARNINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (rf"{_GIT}reset\b[^;&|\n]*--hard", "may discard uncommitted changes"),
        (rf"{_GIT}checkout\b[^;&|\n]*\s(?:--\s|\.(?:\s|$))", "may discard uncommitted changes"),
        (rf"{_GIT}restore\b(?![^;&|\n]*--staged)", "may discard uncommitted changes"),
        (rf"{_GIT}clean\b[^;&|\n]*\s-\w*f", "may delete files that git does not know"),
        (rf"{_GIT}push\b[^;&|\n]*(?:\s--force(?!-with-lease)\b|\s-\w*f\b|\s\+\w)", "may overwrite remote history"),
        (rf"{_GIT}push\b[^;&|\n]*\s--force-with-lease", "may overwrite remote history"),
        (rf"{_GIT}push\b[^;&|\n]*(?:\s--delete\b|\s:\w)", "may delete a remote branch"),
        (rf"{_GIT}(?:commit|push|merge|rebase)\b[^;&|\n]*--no-verify", "may skip safety hooks"),
        (rf"{_GIT}commit\b[^;&|\n]*--amend", "may rewrite the last commit"),
        (rf"{_GIT}(?:filter-branch|filter-repo|rebase)\b", "may rewrite history"),
        (rf"{_GIT}stash\s+(?:drop|clear)", "may discard stashed changes"),
        (rf"{_GIT}branch\b[^;&|\n]*\s-\w*D", "may delete a branch that is not merged"),
        (rf"{_GIT}(?:reflog\s+expire|gc\b[^;&|\n]*--prune)", "may remove the way back to lost commits"),
        (
            r"\brm\b[^;&|\n]*\s-\w*(?:r\w*f|f\w*r)|\brm\b[^;&|\n]*\s-\w*r[^;&|\n]*\s-\w*f"
            r"|\brm\b[^;&|\n]*\s-\w*f[^;&|\n]*\s-\w*r|\brm\b[^;&|\n]*--recursive[^;&|\n]*--force",
            "may recursively force-remove files",
        ),
        (r"\brm\b[^;&|\n]*\s(?:-\w*r|--recursive)", "may recursively remove files"),
        (r"\bfind\b[^;&|\n]*\s-delete\b", "may delete every file that is found"),
        (r"\b(?:DROP|TRUNCATE)\s+(?:TABLE|DATABASE|SCHEMA|INDEX|VIEW)\b|\bTRUNCATE\s+\w", "may drop or truncate database objects"),
        (r"\bDELETE\s+FROM\s+[\w.\"`]+\s*(?:;|[\"']|$)", "may delete all rows"),
        (r"\bkubectl\b[^;&|\n]*\bdelete\b", "may delete Kubernetes resources"),
        (r"\bhelm\b[^;&|\n]*\b(?:uninstall|delete)\b", "may delete Kubernetes resources"),
        (r"\bterraform\b[^;&|\n]*(?:\bdestroy\b|\s-destroy\b)", "may destroy Terraform infrastructure"),
        (r"\b(?:pulumi|cdk|tofu)\b[^;&|\n]*\bdestroy\b", "may destroy infrastructure"),
        (r"\bdocker\b[^;&|\n]*\b(?:prune|rm|rmi|down\b[^;&|\n]*-v)\b", "may delete containers, images or volumes"),
        (r"\baws\b[^;&|\n]*\bs3\b[^;&|\n]*\b(?:rm|rb)\b", "may delete stored objects"),
        (r"\b(?:mkfs(?:\.\w+)?|wipefs|shred|fdisk|parted)\b", "may destroy the data of a disk"),
        (r"\bdd\b[^;&|\n]*\bof=/dev/", "may destroy the data of a disk"),
        (r"\bch(?:mod|own)\b[^;&|\n]*\s(?:-\w*R|--recursive)", "may change the rights of many files"),
        (r"\b(?:shutdown|reboot|halt|poweroff)\b", "may stop the machine"),
    )
)
_HINTS = re.compile(
    r"git|rm|find|drop|truncate|delete|kubectl|helm|terraform|pulumi|cdk|tofu|docker|aws|mkfs|wipefs|shred|fdisk|parted"
    r"|dd|chmod|chown|shutdown|reboot|halt|poweroff",
    re.IGNORECASE,
)


def warnings_for(command: str) -> tuple[str, ...]:
    """Each warning once, in the order of the table."""
    if _HINTS.search(command) is None:
        return ()
    return tuple(dict.fromkeys(text for pattern, text in _WARNINGS if pattern.search(command)))
