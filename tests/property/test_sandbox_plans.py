"""Over made-up trees and policies: what a mechanism is told to do is what the policy says, for every path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from retinue.tools.shell.sandbox.landlock import rules
from retinue.tools.shell.sandbox.plan import Access, Kind, Mount, accesses, nearest, paths_to_look_at, plan
from retinue.tools.shell.sandbox.policy import SandboxPolicy

SCRATCH = Path("/scratch")
NAMES = ("a", "b", "tmp")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda names: Path("/", *names))
ENTRIES = st.lists(PATHS, max_size=3, unique=True).map(tuple)
POLICIES = st.builds(
    SandboxPolicy,
    writable=ENTRIES,
    scratch=st.just(SCRATCH),
    readable=ENTRIES,
    protected=ENTRIES,
    hidden=ENTRIES,
)
TREES = st.lists(PATHS, max_size=8).map(
    lambda files: {folder for file in files for folder in file.parents} | {SCRATCH, Path("/tmp"), Path("/")}
)


def kinds_in(tree: set[Path], policy: SandboxPolicy) -> dict[Path, Kind]:
    return {path: "folder" if path in tree else "absent" for path in paths_to_look_at(policy)}


def said_of(path: Path, policy: SandboxPolicy) -> Access:
    """What the policy says, by its own words: of two entries the deeper one counts."""
    said = accesses(policy)
    deepest = path if path in said else nearest(path, said)
    return said[deepest] if deepest is not None else "readable"


def mounted(path: Path, mounts: tuple[Mount, ...]) -> str:
    by_path: Mapping[Path, Mount] = {mount.path: mount for mount in mounts}
    deepest = path if path in by_path else nearest(path, by_path)
    return by_path[deepest].how if deepest is not None else "readable"


MEANT = {
    "writable": ("writable",),
    "readable": ("readable",),
    "protected": ("readable",),
    "hidden": ("hidden", "private", "scratch"),
    "private": ("private", "scratch", "hidden"),
}


@given(POLICIES, TREES)
def test_the_mounts_say_of_everything_there_what_the_policy_says(policy: SandboxPolicy, tree: set[Path]) -> None:
    found = plan(policy, kinds_in(tree, policy))
    for path in tree:
        assert mounted(path, found.mounts) in MEANT[said_of(path, policy)], path


@given(POLICIES, TREES)
def test_what_is_protected_cannot_be_made_and_nothing_above_it_moved(policy: SandboxPolicy, tree: set[Path]) -> None:
    found = plan(policy, kinds_in(tree, policy))
    points = {mount.path for mount in found.mounts}
    made = {path for _, path in found.made}
    for path in policy.protected:
        above = [folder for folder in path.parents if mounted(folder, found.mounts) == "writable"]
        if said_of(path, policy) == "protected" and above and mounted(path.parent, found.mounts) == "writable":
            assert path in points
            assert path in tree or path in made
            outermost = next(folder for folder in path.parents if folder in accesses(policy) and folder in points)
            assert {folder for folder in path.parents if outermost in folder.parents} <= points


@given(POLICIES, TREES)
def test_mount_points_are_made_in_writable_folders_only(policy: SandboxPolicy, tree: set[Path]) -> None:
    found = plan(policy, kinds_in(tree, policy))
    for base, path in found.made:
        assert base in tree
        assert mounted(base, found.mounts) == "writable"
        assert path not in tree


@given(POLICIES, TREES)
def test_mounts_come_before_those_below_them(policy: SandboxPolicy, tree: set[Path]) -> None:
    found = plan(policy, kinds_in(tree, policy))
    for at, mount in enumerate(found.mounts):
        assert not any(later.path in mount.path.parents for later in found.mounts[at + 1 :])


@given(POLICIES, TREES)
def test_landlock_allows_what_the_policy_says_and_never_more(policy: SandboxPolicy, tree: set[Path]) -> None:
    assume(not any(path == Path("/dev") for path in accesses(policy)))

    def children(folder: Path) -> list[tuple[Path, Kind]]:
        return [(path, "folder") for path in sorted(tree) if path.parent == folder and path != folder]

    found = rules(policy, kinds_in(tree, policy), children)
    for path in tree:
        rights = {rule.right for rule in found if rule.path == path or rule.path in path.parents}
        said = said_of(path, policy)
        below = [said_of(other, policy) for other in tree if path in other.parents]
        if said in ("hidden", "private"):
            assert rights == set()
        if said in ("readable", "protected"):
            assert "change" not in rights
        if said not in ("hidden", "private") and path != Path("/") and not {"hidden", "private"} & set(below):
            assert rights
        if said == "writable" and not any(path in entry.parents for entry in accesses(policy)):
            assert "change" in rights


@given(POLICIES, TREES)
def test_landlock_lets_nothing_absent_and_protected_be_made(policy: SandboxPolicy, tree: set[Path]) -> None:
    def children(folder: Path) -> list[tuple[Path, Kind]]:
        return [(path, "folder") for path in sorted(tree) if path.parent == folder and path != folder]

    found = rules(policy, kinds_in(tree, policy), children)
    for path in policy.protected:
        if said_of(path, policy) == "protected":
            assert not any(rule.right == "change" and rule.path in (path, *path.parents) for rule in found)
