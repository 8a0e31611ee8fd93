"""How the team's result reaches a branch of the user's: never by moving what somebody has checked out."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.git import GitResult, run_as_user
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import StateError


@dataclass(frozen=True, slots=True)
class Landing:
    """`moved`, or why not and the `command` that takes the work."""

    moved: bool
    reason: str = ""
    command: str = ""


async def branch_sha(user: UserRepo, into: str) -> str | None:
    """Where a branch stands; recorded at the launch, and compared at the end."""
    return await user.commit_of(_branch_ref(into))


async def land_into(user: UserRepo, run: str, into: str, sha: str, recorded: str | None) -> Landing:
    """Move `into` to the result, once, at the end: only if checked out nowhere, still where it was, and behind.

    `recorded` is where it stood at the launch, None when there was no such branch. The result must be mirrored already.
    """
    ref = _branch_ref(into)
    holder, now = await asyncio.gather(user.checked_out(ref), user.commit_of(ref))
    if holder is not None:
        return Landing(
            False,
            f"{into} is checked out in {holder}",
            f"git -C {shlex.quote(str(holder))} merge {names.result_branch(run)}",
        )
    by_hand = f"git switch {into} && git merge {names.result_branch(run)}"
    if now == sha:
        return Landing(True)
    if now != recorded:
        return Landing(False, f"{into} has moved since the run was launched", by_hand)
    if now is not None and not await user.is_ancestor(now, sha):
        return Landing(False, f"{into} is not behind the result, so it cannot simply be moved", by_hand)
    if not await user.move_branch(ref, sha, now):
        return Landing(False, f"{into} was moved by somebody else just now", by_hand)
    return Landing(True)


async def land_checkout(
    user: UserRepo, run: str, *, base_kind: str, env: Mapping[str, str], deadline_s: float = 600.0
) -> str:
    """`retinue land RUN`: the user's own git, configuration and hooks, takes the result into the checkout.

    Answers what git said, and whether something landed. Raises StateError when the result is not taken whole, with the
    way on: git's own way back only when there is something to take back.
    """
    ref = names.result_ref(run)
    result = await user.commit_of(ref)
    if result is None:
        raise StateError(f"run {run} has no result: there is no branch {names.result_branch(run)} in {user.root}")
    if base_kind == "worktree":
        return await _apply(user, run, result, env, deadline_s)
    if await user.is_ancestor(result, "HEAD"):
        return _has_it(user, run)
    begun_before = await _is_merging(user)
    merged = await run_as_user(
        ["merge", "--no-edit", names.result_branch(run)], cwd=user.root, env=env, deadline_s=deadline_s
    )
    if merged.code != 0:
        raise StateError(
            f"git merge {names.result_branch(run)} stopped in {user.root}:\n{(merged.stdout + merged.stderr).strip()}\n"
            + await _way_on(user, begun_before)
        )
    return _landed(user, merged.stdout)


def _landed(user: UserRepo, said: str) -> str:
    return "\n".join(filter(None, (said.strip(), f"landed in {user.root}")))


def _has_it(user: UserRepo, run: str) -> str:
    return f"{user.root} has the result of run {run} already: there is nothing to land"


async def _is_merging(user: UserRepo) -> bool:
    return await user.commit_of("MERGE_HEAD") is not None


async def _way_on(user: UserRepo, begun_before: bool) -> str:
    """What to do after a merge that did not go through. One that never began has no way back."""
    if begun_before:
        return (
            "A merge of your own is under way there: end it with `git commit` or `git merge --abort`, then land again."
        )
    if await _is_merging(user):
        return "Resolve what it names and `git commit`, or take it back with `git merge --abort`."
    return "No merge was begun. Commit or put aside what is named, or mend what git asks for, then land again."


async def _apply(user: UserRepo, run: str, result: str, env: Mapping[str, str], deadline_s: float) -> str:
    """The run began with the user's uncommitted changes: its result is a patch on top of them, not a merge."""
    patch = await user.run(
        ["diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", names.pin_ref(run), result],
        purpose="comparing the result with the base",
    )
    if not patch.stdout:
        return "The result changes nothing."

    async def apply(*how: str) -> GitResult:
        return await run_as_user(
            ["apply", "--whitespace=nowarn", *how, "-"],
            cwd=user.root,
            env=env,
            stdin=patch.stdout,
            deadline_s=deadline_s,
        )

    if (await apply("--reverse", "--check")).code == 0:
        return _has_it(user, run)
    tried = ""
    # First as it is: `--3way` wants a clean index, and the checkout normally still has the very changes of the base.
    for how in ((), ("--3way",)):
        applied = await apply(*how)
        if applied.code == 0:
            return _landed(user, applied.stdout + applied.stderr)
        tried = applied.stderr.strip()
    raise StateError(
        f"the result does not apply to {user.root} as it is now:\n{tried}\n"
        f"Commit or put aside what you changed since the launch, or merge the branch {names.result_branch(run)}."
    )


def _branch_ref(into: str) -> str:
    if into == "HEAD" or into.startswith("refs/") or not names.is_branch(into):
        raise StateError(
            f"merge.into: {into!r} is no branch name that retinue can move: write one of letters, digits "
            "and . _ + - /, as in main or work/login, without refs/heads/"
        )
    return f"refs/heads/{into}"
