"""What an agent's own shell runs to make, weigh and remove worktrees beside its own. Pure: text in and out.

These commands run as the agent, with the agent's git and in its sandbox: what it can put in their way is its own.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.merging.submission import Place, own_repository
from retinue.orchestrator.workspaces.names import ref_name
from retinue.tools.errors import ToolError
from retinue.tools.system.ports import WorktreeLoss

KIND = "worktree"
SAVED = "refs/retinue/saved"
"""Where an agent's repository holds what a removal would lose until the Depot has it."""

_ANSWER = re.compile(r"^retinue-worktree: (ok|refused)(?: (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Beside:
    """One worktree beside an agent's own. `folder` is the only one that all of them lie in."""

    folder: Path
    name: str
    branch: str

    @classmethod
    def of(cls, folder: Path, run: str, agent: str, name: str) -> Beside:
        """`/` in a name becomes `+`: names that begin alike do not stand in each other's way."""
        flat = name.replace("/", "+")
        return cls(folder, flat, f"retinue/{run}/{ref_name(agent)}/beside/{flat}")

    @property
    def path(self) -> Path:
        return self.folder / self.name


def make_script(place: Place, beside: Beside, start: str) -> str:
    """Opens it when it is there; `start` is a commit, or HEAD."""
    path, branch = shlex.quote(str(beside.path)), shlex.quote(beside.branch)
    return (
        own_repository(KIND, place)
        + f"""\
if [ -e {path} ] || [ -L {path} ]; then
  [ ! -L {path} ] && [ "$(git -C {path} rev-parse --show-toplevel 2>/dev/null)" -ef {path} ] \\
    || refuse {shlex.quote(f"{beside.path} is there already and is no worktree; move it away, or choose another name")}
elif git show-ref --verify --quiet refs/heads/{branch}; then
  git worktree add --quiet {path} {branch} || refuse 'git worktree add failed; see above'
else
  git worktree add --quiet --no-track -b {branch} {path} {shlex.quote(start)} \\
    || refuse 'git worktree add failed; see above'
fi
printf '\\nretinue-worktree: ok\\n'
"""
    )


def loss_script(beside: Beside) -> str:
    """Counts what is nowhere else: files that differ from the last commit, commits that no other branch reaches."""
    return _in_place(beside) + (
        f"""\
files=$(git status --porcelain --untracked-files=all | wc -l) || refuse 'git status failed; see above'
commits=$(git rev-list --count HEAD {beside.branch} --not --exclude={beside.branch} --branches --remotes) \\
  || refuse 'git rev-list failed; see above'
printf '\\nretinue-worktree: ok %d %d\\n' "$files" "$commits"
"""
    )


def save_script(beside: Beside) -> str:
    """One commit of all that is not ignored, on top of HEAD, and the branch: both under refs that say their names."""
    prefix = f"{SAVED}/{beside.name}"
    return _in_place(beside) + (
        f"""\
index=$(git rev-parse --git-path retinue-saved-index) || refuse 'git rev-parse failed'
rm -f "$index"
export GIT_INDEX_FILE="$index"
git read-tree HEAD && git add -A && tree=$(git write-tree) || refuse 'the files cannot be saved; see above'
unset GIT_INDEX_FILE
rm -f "$index"
saved=$(git commit-tree "$tree" -p HEAD -m {shlex.quote(f"What the worktree {beside.name} had")}) \\
  || refuse 'git commit-tree failed; see above'
branch=$(git rev-parse --verify --quiet refs/heads/{beside.branch}) || branch=$saved
git update-ref {prefix}/files "$saved" && git update-ref {prefix}/branch "$branch" || refuse 'git update-ref failed'
printf '\\nretinue-worktree: ok %s %s\\n' "$saved" "$branch"
"""
    )


def remove_script(place: Place, beside: Beside) -> str:
    path, branch = shlex.quote(str(beside.path)), shlex.quote(beside.branch)
    return (
        own_repository(KIND, place)
        + f"""\
if [ -e {path} ]; then
  git worktree remove --force --force {path} || refuse 'git worktree remove failed; see above'
fi
git worktree prune
if git show-ref --verify --quiet refs/heads/{branch}; then
  git branch --quiet -D {branch} || refuse 'git branch -D failed; see above'
fi
printf '\\nretinue-worktree: ok\\n'
"""
    )


def _in_place(beside: Beside) -> str:
    path = shlex.quote(str(beside.path))
    return f"""\
set -u
refuse() {{ printf '\\nretinue-{KIND}: refused %s\\n' "$1"; exit 3; }}
cd {path} || refuse {shlex.quote(f"{beside.path} is gone")}
[ "$(git rev-parse --show-toplevel)" -ef . ] || refuse 'git finds another worktree from there; mend its .git first'
"""


def parse(output: str, doing: str) -> tuple[str, ...]:
    """What the script said besides that it went well. ToolError with what the agent can do when it did not."""
    found = list(_ANSWER.finditer(output))
    if found and found[-1][1] == "ok":
        return tuple((found[-1][2] or "").split())
    why = (found[-1][2] if found else "") or "git did not say what it did"
    before = _ANSWER.sub("", output).strip()[-2_000:]
    raise ToolError(f"{doing}: {why}" + (f"\n{before}" if before else ""))


def parse_loss(output: str, doing: str) -> WorktreeLoss:
    said = parse(output, doing)
    if len(said) != 2 or not all(word.isdecimal() for word in said):
        raise ToolError(f"{doing}: git said something else than two numbers")
    return WorktreeLoss(files=int(said[0]), commits=int(said[1]))
