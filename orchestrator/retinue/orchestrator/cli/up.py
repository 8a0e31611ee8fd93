"""`up`, `resume` and `run`: commands that start actors and show them at work."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.agents.boot import RuleSet
from retinue.tools.errors import Aborted, SpecError, StateError

if TYPE_CHECKING:
    from retinue.orchestrator.cluster.own import ClusterHandle
    from retinue.orchestrator.prepare import Launch
    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.spec.load import LoadedSpec
    from retinue.orchestrator.state.paths import RunDir, StateDir
    from retinue.orchestrator.team.plan import LaunchPlan

StateOption = Annotated[Path | None, typer.Option("--state-dir", help="Where runs lie, if not in the usual place.")]
EphemeralOption = Annotated[bool, typer.Option("--ephemeral", help="On a cluster of its own that ends with the run.")]
AddressOption = Annotated[str | None, typer.Option(help="An existing Ray cluster, as HOST:PORT.")]
DetachOption = Annotated[bool, typer.Option("--detach", "-d", help="Start it and return; `retinue logs -f` watches.")]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Accept, this once, the spec's commands and what the repository brings.")
]
SettingsOption = Annotated[Path | None, typer.Option("--settings", metavar="FILE", help="One more settings file.")]
ModelOption = Annotated[str | None, typer.Option(help="Model of every agent: PROVIDER:NAME.")]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lives, and on what."""

    state: StateDir
    flags: str
    ephemeral: bool
    address: str | None


def place_of(state_dir: Path | None, ephemeral: bool = False, address: str | None = None) -> Place:
    from retinue.orchestrator.state.paths import StateDir, state_root

    flags = f" --state-dir {shlex.quote(str(state_dir))}" if state_dir is not None else ""
    return Place(StateDir(state_root(os.environ, state_dir)), flags, ephemeral, address)


def up(
    spec: Annotated[Path, typer.Argument(help="The team's YAML file.")],
    detach: DetachOption = False,
    run_id: Annotated[str | None, typer.Option(help="Name of the run, if not made up.")] = None,
    model: ModelOption = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="Change a value of the spec: a.b=c.")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="One more rule that allows, as in `Bash(make test)`.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="One more rule that denies.")] = None,
    ask: Annotated[list[str] | None, typer.Option(help="One more rule that asks.")] = None,
    settings: SettingsOption = None,
    trust: TrustOption = False,
    ephemeral: EphemeralOption = False,
    address: AddressOption = None,
    state_dir: StateOption = None,
) -> None:
    """Launch the team of SPEC and show it at work. Losing the terminal leaves it running.

    Exit code 0 only when every task is done and merged.

    Example:

    retinue up team.yaml --model anthropic:claude-sonnet-5-5
    """
    from retinue.orchestrator.cli.probe import check_spec_environment
    from retinue.orchestrator.spec.load import load_spec

    with nothing_started():
        loaded = load_spec(spec, env=os.environ, overrides=override or (), model=model)
        for warning in check_spec_environment(loaded):
            _note(f"warning: {warning}")
    rules = RuleSet(source="cli", allow=tuple(allow or ()), ask=tuple(ask or ()), deny=tuple(deny or ()))
    raise typer.Exit(
        _launch(loaded, place_of(state_dir, ephemeral, address), rules, run_id, settings, trust=trust, detach=detach)
    )


def _launch(
    loaded: LoadedSpec,
    place: Place,
    rules: RuleSet,
    run_id: str | None,
    flag: Path | None,
    *,
    trust: bool,
    detach: bool,
) -> int:
    from retinue.orchestrator.cli.trusting import gathered_for, settled
    from retinue.orchestrator.prepare import Launch, check_access, draft_for_people, look_for_sandbox
    from retinue.orchestrator.sandboxing import sandbox_text
    from retinue.orchestrator.state.paths import new_run_id

    today = date.today()
    run = run_id or new_run_id(loaded.spec.name, today, os.urandom(8))
    place.state.refuse_taken(run)
    check_access(loaded.spec, os.environ)
    with nothing_started():
        found = look_for_sandbox(loaded.spec)
        settings = settled(gathered_for(loaded, place.state, os.environ, flag), place.state, trust=trust)
        launch = Launch(run, today.isoformat(), place.state, dict(os.environ), rules, probe=found, settings=settings)
        draft = asyncio.run(draft_for_people(loaded, launch))
    _note(f"sandbox: {sandbox_text(draft.sandbox)}")
    ask_trust(draft, trust=trust)
    _limits(loaded)
    return _show(prepare_and_start(loaded, launch, place), place, detach=detach)


@dataclass(frozen=True, slots=True)
class Launched:
    """A run whose team has been told to begin."""

    files: RunFiles
    team: object
    cluster: ClusterHandle

    def release(self) -> None:
        """If the run is over, a cluster that was only for it ends now. A kept one may be in use for a resumed run."""
        from retinue.orchestrator.cluster import own

        if self.cluster.ephemeral and not self.files.dir.is_live():
            own.release_run(self.cluster, self.files.plan.run)


def prepare_and_start(loaded: LoadedSpec, launch: Launch, place: Place) -> Launched:
    """Everything between a checked spec and a team at work. When it fails or is interrupted, no run is left behind,
    except for an interruption when the team has begun already."""
    from retinue.orchestrator.cli import session
    from retinue.orchestrator.prepare import check_access, discard_run
    from retinue.orchestrator.run_files import RunFiles

    launch.state.refuse_taken(launch.run)
    check_access(loaded.spec, launch.env)
    with nothing_started():
        made, cluster = asyncio.run(_make(loaded, launch, place))
        try:
            session.attach(cluster)
        except BaseException:
            try:
                asyncio.run(discard_run(loaded, made))
            finally:
                _release(place, cluster, launch.run)
            raise
    files = RunFiles(made)
    try:
        return start(files, cluster, place)
    except KeyboardInterrupt:
        if not made.is_live():
            _release(place, cluster, launch.run)
        raise Aborted(
            f"interrupted while run {launch.run} began: `retinue resume {launch.run}{place.flags}` goes on with it, "
            f"`retinue down {launch.run}{place.flags}` ends it"
        ) from None


async def _make(loaded: LoadedSpec, launch: Launch, place: Place) -> tuple[RunDir, ClusterHandle]:
    """The slowest two things of a launch have nothing to do with each other."""
    from retinue.orchestrator.prepare import discard_run, prepare_run

    cluster = asyncio.create_task(asyncio.to_thread(ensure_cluster, place))
    made: RunDir | None = None
    try:
        made = await prepare_run(loaded, launch)
        return made, await asyncio.shield(cluster)
    except BaseException:
        if made is not None:
            await discard_run(loaded, made)
        await asyncio.gather(cluster, return_exceptions=True)
        if cluster.exception() is None:
            _release(place, cluster.result(), launch.run)
        raise


def _release(place: Place, cluster: ClusterHandle, run: str) -> None:
    from retinue.orchestrator.cluster import own

    if place.ephemeral:
        own.release_run(cluster, run)


@contextmanager
def nothing_started() -> Generator[None]:
    """Ctrl-C in here leaves nothing behind, and the person is told so."""
    try:
        yield
    except KeyboardInterrupt:
        raise Aborted("interrupted; nothing was started") from None


def start(files: RunFiles, cluster: ClusterHandle, place: Place) -> Launched:
    """Make the run's actors on a cluster that this process is attached to, or find them there."""
    from retinue.orchestrator.cli import session
    from retinue.orchestrator.cluster import own

    own.register_run(cluster, files.plan.run, files.dir.lock)
    own.remember_cluster(files.dir.root, cluster)
    if cluster.started and not place.ephemeral and place.address is None:
        _note("started a local cluster; it ends after 10 idle minutes, or with `retinue cluster stop`")
    return Launched(files, session.start_actors(files), cluster)


def _limits(loaded: LoadedSpec) -> None:
    limits = loaded.spec.limits
    tokens = f", {limits.tokens} tokens" if limits.tokens else ""
    usd = f"{limits.usd:g} USD, " if limits.usd is not None else ""
    wall = f"{limits.wall / 60:g} min" if limits.wall % 60 == 0 else f"{limits.wall:g} s"
    _note(f"limits: {usd}{limits.turns} model requests{tokens}, {wall}")


def ask_trust(plan: LaunchPlan, *, trust: bool) -> None:
    """Without a working sandbox these commands can do what you can; so somebody has to say that they may."""
    from retinue.orchestrator.launch import executes

    commands = executes(plan)
    if not commands or trust or plan.sandbox.state == "on":
        return
    _note("This spec runs commands on code that agents write, outside of any sandbox:")
    for command in commands:
        _note(f"  {command}")
    if not sys.stdin.isatty():
        raise SpecError("these commands need your trust: pass --trust, or answer the question on a terminal")
    if not typer.confirm("Run them?", default=False, err=True):
        raise Aborted("nothing was started")


def _note(text: str) -> None:
    typer.echo(text, err=True)


def ensure_cluster(place: Place) -> ClusterHandle:
    from retinue.orchestrator.cluster import own

    if place.address is not None:
        return own.foreign(place.address, os.environ)
    return own.ensure(os.environ, ephemeral=place.ephemeral)


def _show(launched: Launched, place: Place, *, detach: bool, started: Callable[[], None] = lambda: None) -> int:
    """`started` is called once the run's team is at work."""
    from retinue.orchestrator.cli import session
    from retinue.orchestrator.cli.output import console

    run = launched.files.plan.run
    try:
        if detach:
            _open_quietly(launched, place)
            typer.echo(run)
            _note(f"watch it with: retinue logs {run} -f{place.flags}")
            return 0
        watching = session.watch(launched.files, launched.team, console(), console(stderr=True), place.flags, started)
        return asyncio.run(watching)
    finally:
        launched.release()


def _open_quietly(launched: Launched, place: Place) -> None:
    from retinue.orchestrator.cli import session

    run = launched.files.plan.run
    try:
        asyncio.run(session.opened(launched.team))
    except KeyboardInterrupt:
        raise Aborted(f"interrupted; run {run} goes on: `retinue stop {run}{place.flags}` stops it") from None


def resume(
    run: Annotated[str, typer.Argument(help="The run, or the beginning of its id.")],
    detach: DetachOption = False,
    ephemeral: EphemeralOption = False,
    address: AddressOption = None,
    state_dir: StateOption = None,
) -> None:
    """Go on with a run that was stopped or lost its processes; attach to one that is live.

    Example:

    retinue resume demo
    """
    from retinue.orchestrator.cli import session
    from retinue.orchestrator.run_files import RunFiles

    place = place_of(state_dir, ephemeral, address)
    files = RunFiles(place.state.find(run))
    # Of two at once, the second finds a live run.
    with session.starting(files) as started:
        asyncio.run(session.has_left(files))
        cluster = _cluster_of(files, session.phase_of(files), place)
        session.attach(cluster)
        launched = start(files, cluster, place)
        raise typer.Exit(_show(launched, place, detach=detach, started=started))


def _cluster_of(files: RunFiles, phase: str, place: Place) -> ClusterHandle:
    """Where the run's actors are or will be. While Ray restarts its team a run only looks as if it were not live; a
    second team elsewhere would work beside the agents of the first."""
    from retinue.orchestrator.cluster import own

    if files.dir.is_live():
        return own.recall_cluster(files.dir.root)
    if phase in ("done", "failed"):
        run = files.plan.run
        raise StateError(f"run {run} has ended ({phase}); `retinue logs {run}{place.flags}` tells how")
    if phase != "stopped":
        with suppress(StateError):
            known = own.recall_cluster(files.dir.root)
            if known.folder is not None:
                return known
    return ensure_cluster(place)


def register(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(resume)
