"""What an agent's own shell runs in its worktree to hand its work in, and to move on to the tip. Pure: text in and out.

These commands run as the agent, with the agent's git; ours never enters a worktree.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces.facts import Workspace
from retinue.orchestrator.workspaces.git import GitError
from retinue.orchestrator.workspaces.names import TEAM_TIP
from retinue.orchestrator.workspaces.worktrees import admin_folder
from retinue.tools.errors import InvariantBroken, ToolError

_ANSWER = re.compile(r"^retinue-(submission|sync): (ok|refused|moved|left) (.*)$", re.MULTILINE)

_PRELUDE = """\
[ ! -d "$(git rev-parse --git-path rebase-merge)" ] && [ ! -d "$(git rev-parse --git-path rebase-apply)" ] \\
  || refuse 'a rebase is going on; finish it (git rebase --continue) or give it up (git rebase --abort)'
[ -z "$(git ls-files --unmerged | head -n 1)" ] \\
  || refuse 'a merge has conflicts that are not resolved; resolve them, git add the files, and complete the task again'
branch=$(git symbolic-ref --quiet --short HEAD) \\
  || refuse 'HEAD is detached; go back to a branch: git switch BRANCH'
git add -A || refuse 'git add failed; see above'
nested=$(git diff --cached --raw --no-renames --diff-filter=A HEAD \\
  | awk '$2 == "160000"' | cut -f 2- | head -n 1)
if [ -n "$nested" ]; then
  git reset --quiet -- "$nested"
  refuse "a repository of its own lies in $nested; remove its .git folder, move it away, or ignore it"
fi
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The agent's worktree, and the folder in its own repository that git must find from there. Both real paths."""

    worktree: Path
    admin: Path


def place_of(workspace: Workspace) -> Place:
    """Raises ToolError when the agent's repository does not know the worktree any more."""
    try:
        return Place(workspace.path, admin_folder(workspace.path, workspace.git_dir))
    except GitError as error:
        raise ToolError(
            f"your worktree's repository was removed or changed: {error}. Nothing can be committed from here, and no "
            "other repository will do. Say so to your lead, or to the user; your files are untouched."
        ) from None


def own_repository(kind: str, place: Place) -> str:
    """Defines `refuse`, and refuses unless git works on the agent's own repository: git searches upwards for one."""
    admin, worktree, pointer = (shlex.quote(str(p)) for p in (place.admin, place.worktree, place.worktree / ".git"))
    write = f"printf 'gitdir: %s\\n' {admin} > {pointer}"
    return f"""\
set -u
refuse() {{ printf '\\nretinue-{kind}: refused %s\\n' "$1"; exit 3; }}
found=$(git rev-parse --absolute-git-dir 2>&1) || found="nothing ($(printf %s "$found" | head -n 1))"
if ! [ "$found" -ef {admin} ]; then
  remedy={shlex.quote(write)}
  if [ -d {pointer} ] || [ -L {pointer} ]; then remedy={shlex.quote(f"rm -rf {pointer} && {write}")}; fi
  refuse "the .git of your worktree was removed or replaced: instead of your own repository git finds $found. \
Nothing was committed; your files, and what you committed before that, are untouched. Put it back with: $remedy"
fi
[ "$(git rev-parse --show-toplevel)" -ef {worktree} ] \\
  || refuse 'its configuration names another worktree; undo that with: git config --unset extensions.worktreeConfig'
"""


@dataclass(frozen=True, slots=True)
class Handed:
    """What was handed in. `committed` says that there were changes to commit."""

    branch: str
    sha: str
    committed: bool


def submission_script(message: str, place: Place) -> str:
    """A bash script for the agent's worktree: commit in the agent's name, then say branch and commit."""
    return (
        own_repository("submission", place)
        + _PRELUDE
        + f"""\
how=unchanged
if ! git diff --cached --quiet || [ -f "$(git rev-parse --git-path MERGE_HEAD)" ]; then
  git commit --quiet --message={shlex.quote(message)} || refuse 'git commit failed; see above'
  how=committed
fi
printf '\\nretinue-submission: ok %s %s %s\\n' "$branch" "$(git rev-parse HEAD)" "$how"
"""
    )


def parse_submission(output: str) -> Handed:
    """Raises ToolError, with what the agent can do, when the work could not be handed in."""
    verdict, rest = _last(output, "submission")
    fields = rest.split(" ")
    if verdict == "ok" and len(fields) == 3:
        return Handed(fields[0], fields[1], fields[2] == "committed")
    before = _ANSWER.sub("", output).strip()[-2_000:]
    why = rest or "git did not say what it did"
    raise ToolError(f"your work could not be handed in: {why}" + (f"\n{before}" if before else ""))


# --- moving on to the tip, at a claim and when an idle agent's team has landed something ----------------------------


@dataclass(frozen=True, slots=True)
class Sync:
    """Run `script` in the worktree, as the agent. It checks and moves in one go."""

    script: str


@dataclass(frozen=True, slots=True)
class Synced:
    """`text` is for the agent; empty when nothing changed for it."""

    moved: bool
    text: str


def sync_with_tip(tip: str, place: Place, *, base: str, last_merged: str | None) -> Sync | None:
    """What brings a settled branch to the tip; None when that can only be where it is.

    `last_merged` is the commit that the agent last handed in and that was merged. A clean branch there, or without any
    commit of its own, moves; everything else is left, with advice.
    """
    settled = last_merged or base
    if settled == tip:
        return None
    return Sync(
        own_repository("sync", place)
        + f"""\
left() {{ printf '\\nretinue-sync: left %s\\n' "$1"; exit 0; }}
head=$(git rev-parse --verify --quiet HEAD) || left 'unborn'
[ "$head" != {tip} ] || {{ printf '\\nretinue-sync: ok there\\n'; exit 0; }}
git merge-base --is-ancestor {tip} HEAD && {{ printf '\\nretinue-sync: ok there\\n'; exit 0; }}
[ "$head" = {settled} ] || git merge-base --is-ancestor HEAD {tip} || left 'own-commits'
branch=$(git symbolic-ref --quiet --short HEAD) || left 'detached'
[ -z "$(git status --porcelain | head -n 1)" ] || left 'uncommitted'
git checkout --quiet --no-overwrite-ignore -B "$branch" {tip} || left 'in-the-way'
printf '\\nretinue-sync: moved %s\\n' {tip}
"""
    )


def parse_sync(output: str) -> Synced:
    verdict, rest = _last(output, "sync")
    match verdict:
        case "moved":
            return Synced(True, f"Your branch now stands at the team's tip ({rest[:12]}), with all that was merged.")
        case "ok":
            return Synced(False, "")
        case "refused":
            return Synced(False, f"Your branch was not moved to the team's tip: {rest}")
        case _:
            return Synced(False, _ADVICE)


_ADVICE = (
    "Your branch has work of its own, so it was left as it is. Others' work was merged since: commit yours, then bring "
    f"theirs in with `git merge {TEAM_TIP.removeprefix('refs/remotes/')}` and resolve what conflicts."
)


def conflict_text(files: tuple[str, ...], detail: str) -> str:
    """What the author of a conflict is told."""
    named = "\n".join(f"  {name}" for name in files[:50])
    return (
        "Your work conflicts with what was merged in the meantime"
        + (f", in:\n{named}\n" if files else ".\n")
        + "In your worktree run `git merge team/tip`, resolve the conflicts so that both changes are kept, run the "
        "tests, commit, and complete the task again." + (f"\n\n{detail}" if detail else "")
    )


def _last(output: str, kind: str) -> tuple[str, str]:
    found = [(m[2], m[3]) for m in _ANSWER.finditer(output) if m[1] == kind]
    if not found and kind == "sync":
        raise InvariantBroken("the sync script said nothing")
    return found[-1] if found else ("refused", "")
