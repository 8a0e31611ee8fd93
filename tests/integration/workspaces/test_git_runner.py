"""Our own git: it ends in time, asks nobody, takes nothing from the surroundings, and says what went wrong."""

from __future__ import annotations

import asyncio
import os
import pickle

import psutil
import pytest

from retinue.orchestrator.workspaces.git import Git, GitError, Identity


def _sleeper(world) -> Git:
    folder = world.top / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        f"#!/bin/sh\necho $$ > {world.top}/pid\n[ -p ../up ] && echo > ../up\n/bin/sleep 60 & wait\n"
    )
    (folder / "git").chmod(0o755)
    return Git(search_path=str(folder))


def _gone(world) -> bool:
    group = int((world.top / "pid").read_text())
    return not [process for process in psutil.process_iter(["status"]) if _runs_in(group, process)]


def _runs_in(group: int, process: psutil.Process) -> bool:
    """A zombie has ended; who reaps it is not our matter."""
    try:
        return os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE
    except ProcessLookupError:
        return False


async def test_a_command_that_does_not_end_is_stopped_with_all_that_it_started(world):
    git = _sleeper(world)
    with pytest.raises(GitError, match=r"waiting: git status did not finish within 0\.5 s"):
        await git.run(["status"], purpose="waiting", deadline_s=0.5)
    assert _gone(world)


async def test_a_cancelled_command_is_stopped(world):
    git = _sleeper(world)
    os.mkfifo(world.top / "up")
    running = asyncio.create_task(git.run(["status"], cwd=world.user))
    await asyncio.to_thread((world.top / "up").read_text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert _gone(world)


async def test_a_failure_names_the_purpose_and_what_git_said_and_can_be_pickled(world):
    with pytest.raises(GitError, match=r"trying: git rev-parse failed with exit code 128: .*nowhere") as raised:
        await world.git.run(["rev-parse", "nowhere"], purpose="trying", git_dir=world.user / ".git")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    result = await world.git.run(["rev-parse", "nowhere"], git_dir=world.user / ".git", check=False)
    assert (result.code, result.line) == (128, "nowhere")


async def test_a_missing_git_is_an_error_and_not_a_crash(world):
    remedy = r"could not be started: .*; install git 2\.38 or newer where PATH finds it; `retinue doctor`"
    with pytest.raises(GitError, match=remedy):
        await Git(search_path=str(world.top)).run(["status"])


async def test_a_missing_directory_is_not_taken_for_a_missing_git(world):
    with pytest.raises(GitError, match=r"the directory .*/gone is not there\Z"):
        await world.git.run(["status"], cwd=world.top / "gone")


async def test_nothing_of_our_own_environment_reaches_git(world, monkeypatch):
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_OBJECT_DIRECTORY", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("HOME", str(world.home))
    world.write(".gitconfig", "[user]\n\tname = Global\n", where=world.home)
    git_dir = world.user / ".git"
    assert (await world.git.run(["config", "user.name"], git_dir=git_dir)).line == "User"
    listing = await world.git.run(["config", "--list", "--show-scope"], git_dir=git_dir)
    assert {line.split("\t")[0] for line in listing.stdout.splitlines()} == {"local", "command"}


async def test_bytes_that_are_no_text_pass_through(world):
    git_dir = world.user / ".git"
    stored = await world.git.run(["hash-object", "-w", "--stdin"], git_dir=git_dir, stdin="\udcff\0\udc80")
    blob = await world.git.run(["cat-file", "blob", stored.line], git_dir=git_dir)
    assert blob.stdout == "\udcff\0\udc80"


async def test_more_commands_than_slots_all_finish(world):
    git = Git(parallel=2)
    results = await asyncio.gather(*(git.run(["rev-parse", "HEAD"], git_dir=world.user / ".git") for _ in range(20)))
    assert {result.line for result in results} == {world.sh("git rev-parse HEAD")}


def test_an_identity_is_author_and_committer():
    assert set(Identity("A", "a@b").environment().values()) == {"A", "a@b"}
