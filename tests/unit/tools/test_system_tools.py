"""Plan mode, worktrees, settings, waiting and teams: what their tools refuse, ask of their ports, and say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.tools.base import AnyTool, ToolContext
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.streaming import run_all
from retinue.tools.people.ports import PlanVerdict
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.system import planning
from retinue.tools.system.config.tool import Config
from retinue.tools.system.enter_plan_mode.tool import EnterPlanMode
from retinue.tools.system.enter_worktree.tool import EnterWorktree
from retinue.tools.system.exit_plan_mode.tool import ExitPlanMode
from retinue.tools.system.exit_worktree.tool import ExitWorktree
from retinue.tools.system.ports import PlanEntry, Setting, WokenBy, WorktreeLeft, WorktreeLoss, WorktreePlace
from retinue.tools.system.sleep.tool import Sleep
from retinue.tools.system.worktrees import is_name
from retinue.tools.team.crew_ports import PeerView, TeamDraft, TeamMade
from retinue.tools.team.list_peers.tool import ListPeers
from retinue.tools.team.team_create.tool import NO_TEAMS, TeamCreate
from retinue.tools.team.team_delete.tool import TeamDelete
from support.calls import Surroundings, call, context, pipeline, run
from support.shown_calls import finder, seen, text_of


async def use(tool: AnyTool, ctx: ToolContext, **values: object) -> CallResult:
    return await run(pipeline(tool), ToolCall.model_validate({"id": "c1", "name": tool.name, "input": values}), ctx)


# --- plan mode --------------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    planning: bool = False
    can_be_approved: bool = True
    file: Path = Path("/run/plan.md")
    held: str = "Do it."
    verdict: PlanVerdict = field(default_factory=lambda: PlanVerdict(approved=True))
    log: list[str] = field(default_factory=list)

    async def enter(self, key: str) -> PlanEntry:
        self.log.append(f"enter {key}")
        self.planning = True
        return PlanEntry(file=str(self.file), again=bool(self.held))

    def text(self) -> str:
        return self.held

    async def ask(self, plan: str) -> PlanVerdict:
        self.log.append(f"ask {plan}")
        return self.verdict

    async def leave(self, key: str) -> None:
        self.log.append("leave")
        self.planning = False


async def test_who_begins_to_plan_is_told_how_and_of_an_earlier_plan() -> None:
    end = await use(EnterPlanMode(), context(plan=(plan := Plan())))
    assert plan.log == ["enter ada~1/c1"]
    assert end.content == f"{planning.instructions('/run/plan.md')}\n\n{planning.again('/run/plan.md')}"


async def test_who_could_never_end_to_plan_does_not_begin() -> None:
    end = await use(EnterPlanMode(), context(plan=(plan := Plan(can_be_approved=False))))
    assert (end.error_class, plan.log) == ("Refused:EnterPlanMode:1", [])


async def test_to_plan_is_left_to_rules_and_a_person_and_to_end_it_is_not() -> None:
    ctx = context(plan=Plan())
    enter, leave = EnterPlanMode(), ExitPlanMode()
    assert await enter.check_permissions(enter.Input(), ctx) is None
    assert not enter.is_read_only(enter.Input())
    let = await leave.check_permissions(leave.Input(), ctx)
    assert let is not None
    assert let.behavior == "allow"


async def test_an_approved_plan_is_echoed_and_observers_see_it() -> None:
    end = await use(ExitPlanMode(), context(plan=(plan := Plan(planning=True))))
    assert plan.log == ["ask Do it.", "leave"]
    assert end.content.endswith("## Approved plan\nDo it.")
    assert end.observed == {"plan": "Do it.", "planFilePath": "/run/plan.md"}


async def test_a_plan_that_was_changed_is_told_as_it_is_now() -> None:
    plan = Plan(planning=True, verdict=PlanVerdict(approved=True, plan="Do it well."))
    end = await use(ExitPlanMode(), context(plan=plan))
    assert end.content.endswith("## Approved plan (edited by the person)\nDo it well.")


async def test_without_a_plan_there_is_nothing_to_echo() -> None:
    end = await use(ExitPlanMode(), context(plan=Plan(planning=True, held=" \n")))
    assert end.content == "You have left plan mode, and there is no plan: go on with the work."


async def test_who_is_refused_stays_in_plan_mode_and_hears_why() -> None:
    plan = Plan(planning=True, verdict=PlanVerdict(approved=False, feedback="Think of Windows."))
    end = await use(ExitPlanMode(), context(plan=plan))
    assert (end.is_error, plan.planning) == (True, True)
    assert end.content.startswith("The plan is not approved: Think of Windows.\nYou are still in plan mode.")


async def test_who_has_left_already_is_told_so() -> None:
    end = await use(ExitPlanMode(), context(plan=(plan := Plan())), allowedPrompts=[{"tool": "Bash"}])
    assert (end.error_class, plan.log) == ("Refused:ExitPlanMode:1", [])
    assert "left it already" in end.content


def test_reminders_are_short_every_five_requests_and_full_every_twenty_five() -> None:
    said = {n: planning.reminder("/p.md", n) for n in range(-1, 60)}
    full = planning.instructions("/p.md")
    assert [n for n, text in said.items() if text] == list(range(1, 60, 5))
    assert [n for n, text in said.items() if text == full] == [1, 26, 51]


# --- worktrees --------------------------------------------------------------------------------------------------------

ONE = WorktreePlace(name="one", path="/run/beside/one", branch="b/one")


@dataclass
class Trees:
    current: WorktreePlace | None = None
    home: Path = Path("/w")
    lost: WorktreeLoss = field(default_factory=WorktreeLoss)
    log: list[str] = field(default_factory=list)

    def kept(self) -> tuple[WorktreePlace, ...]:
        return (ONE,)

    async def enter(self, key: str, name: str | None, *, anew: bool) -> WorktreePlace:
        self.log.append(f"enter {name} {anew=}")
        self.current = ONE
        return ONE

    async def loss(self) -> WorktreeLoss:
        return self.lost

    async def leave(self, key: str, *, remove: bool, discard: bool) -> WorktreeLeft | None:
        self.log.append(f"leave {remove=} {discard=}")
        place, self.current = self.current, None
        rescued = ("refs/r",) if self.lost.files else ()
        return place and WorktreeLeft(place=place, removed=remove, home="/w", loss=self.lost, rescued=rescued)


async def test_entering_and_leaving_move_the_calls_that_follow() -> None:
    trees = Trees()
    line = pipeline(EnterWorktree(), ExitWorktree(), around=Surroundings())
    ctx = context(worktrees=trees)
    (entered,), there = await run_all(line, ctx, [ToolCall(id="a", name="EnterWorktree", input={"name": "one"})])
    assert (there.cwd, there.root) == (Path(ONE.path), Path(ONE.path))
    (left,), back = await run_all(line, there, [call("ExitWorktree", "b", action="keep")])
    assert (back.cwd, back.root) == (Path("/w"), Path("/w"))
    assert entered.content.startswith("You are in the worktree /run/beside/one now, on branch b/one.")
    assert left.content == "You are back in /w. The worktree /run/beside/one stays, with its branch b/one."
    assert trees.log == ["enter one anew=True", "leave remove=False discard=False"]


@pytest.mark.parametrize(
    ("trees", "values", "code"),
    [
        (Trees(), {"name": "a", "path": "/x"}, 1),
        (Trees(), {"name": "../x"}, 2),
        (Trees(), {"name": ""}, 2),
        (Trees(), {"path": "/etc"}, 3),
    ],
)
async def test_what_is_no_further_worktree_is_not_entered(trees: Trees, values: dict[str, object], code: int) -> None:
    end = await use(EnterWorktree(), context(worktrees=trees), **values)
    assert (end.error_class, trees.log) == (f"Refused:EnterWorktree:{code}", [])


async def test_one_that_was_kept_is_entered_by_its_path_from_another() -> None:
    end = await use(EnterWorktree(), context(worktrees=(trees := Trees(current=ONE))), path=ONE.path)
    assert (end.is_error, trees.log) == (False, ["enter one anew=False"])


GOOD = ("a", "a/b", "a.b-c_1", "x" * 64)
BAD = ("", "a//b", ".a", "a/..", "a b", "-x", "x.lock", "x" * 65, "é", "a\n")


@pytest.mark.parametrize(("name", "good"), [*((n, True) for n in GOOD), *((n, False) for n in BAD)])
def test_names_of_worktrees_can_be_folders_and_branches(name: str, good: bool) -> None:
    assert is_name(name) is good


async def test_nothing_is_removed_that_is_nowhere_else_unless_that_is_said() -> None:
    trees = Trees(current=ONE, lost=WorktreeLoss(files=2, commits=1))
    end = await use(ExitWorktree(), context(worktrees=trees), action="remove")
    assert (end.error_class, trees.log) == ("Refused:ExitWorktree:1", [])
    assert "has 2 changed files and 1 commit that no other branch has" in end.content
    end = await use(ExitWorktree(), context(worktrees=trees), action="remove", discard_changes=True)
    assert trees.log == ["leave remove=True discard=True"]
    assert end.content.endswith("that no other branch has; a person can get them back from refs/r.")


async def test_at_home_there_is_nothing_to_leave() -> None:
    end = await use(ExitWorktree(), context(worktrees=Trees()), action="remove")
    assert end.content == "You are in your first worktree already; nothing was done."
    assert (await use(ExitWorktree(), context(worktrees=Trees()), action="drop")).error_class == "InputValidationError"


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass
class Values:
    values: dict[str, str] = field(
        default_factory=lambda: {"model": "m", "color": "red", "permissions.defaultMode": "a"}
    )

    def settings(self) -> tuple[Setting, ...]:
        choices = {"color": ("red", "true", "3"), "permissions.defaultMode": ("a", "b")}
        return tuple(Setting(name=n, value=v, choices=choices.get(n, ()), about="x") for n, v in self.values.items())

    async def set(self, key: str, name: str, value: str) -> None:
        self.values[name] = value


async def test_settings_are_shown_one_or_all() -> None:
    ctx = context(config=Values())
    assert (await use(Config(), ctx, setting="model")).content == "model = m (x; can only be read)"
    assert len((await use(Config(), ctx)).content.splitlines()) == 3


@pytest.mark.parametrize(("value", "kept"), [("red", "red"), (True, "true"), (3, "3")])
async def test_a_setting_is_set_to_one_of_its_values(value: object, kept: str) -> None:
    values = Values()
    end = await use(Config(), context(config=values), setting="color", value=value)
    assert (values.values["color"], end.content) == (kept, f"color is {kept} now; it was red.")


@pytest.mark.parametrize(
    ("setting", "value", "code"), [("nope", None, 1), ("", "x", 1), ("model", "x", 2), ("color", "blue", 3)]
)
async def test_what_cannot_be_set_is_refused(setting: str, value: str | None, code: int) -> None:
    end = await use(Config(), context(config=Values()), setting=setting, value=value)
    assert end.error_class == f"Refused:Config:{code}"


async def test_to_look_is_free_to_set_is_asked_and_what_gives_rights_is_asked_whatever_the_rules_say() -> None:
    around = Surroundings()
    line, ctx = pipeline(Config(), around=around), context(config=Values())
    await run(line, call("Config", setting="color", value="red"), ctx)
    await run(line, call("Config", setting="permissions.defaultMode", value="b"), ctx)
    assert around.forced == [None, "it changes what this agent may do"]
    tool = Config()
    assert tool.is_read_only(tool.Input(setting="color"))
    assert not tool.is_read_only(tool.Input(setting="color", value="red"))


# --- waiting ----------------------------------------------------------------------------------------------------------


@dataclass
class Rest:
    by: WokenBy
    asked: list[float] = field(default_factory=list)

    async def rest(self, seconds: float) -> WokenBy:
        self.asked.append(seconds)
        return self.by


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("time", "The time is over."),
        ("mail", "Woken: there is mail, which follows."),
        ("end", "Woken: this agent is to come to its end."),
    ],
)
async def test_a_sleeper_is_told_what_woke_it_and_holds_no_lease(by: WokenBy, words: str) -> None:
    around, rest = Surroundings(), Rest(by)
    end = await run(pipeline(Sleep(), around=around), call("Sleep", seconds="2.5"), context(waiting=rest))
    assert (end.content, rest.asked) == (words, [2.5])
    assert around.log == ["permission", "journal"]


@pytest.mark.parametrize("seconds", [0, -1, 3_601, "inf", "nan"])
async def test_nobody_sleeps_for_ever_or_for_less_than_no_time(seconds: object) -> None:
    end = await use(Sleep(), context(waiting=(rest := Rest("time"))), seconds=seconds)
    assert (end.error_class, rest.asked) == ("InputValidationError", [])


# --- teams ------------------------------------------------------------------------------------------------------------


@dataclass
class Admin:
    log: list[object] = field(default_factory=list)

    async def create(self, key: str, draft: TeamDraft) -> TeamMade:
        self.log.append(draft)
        return TeamMade(name=draft.name, file="/teams/x.json", lead="team-lead@x")

    async def delete(self, key: str) -> str:
        self.log.append("delete")
        return "x"


async def test_a_team_is_made_and_ended_over_its_port() -> None:
    ctx = context(team_admin=(admin := Admin()))
    made = await use(TeamCreate(), ctx, team_name="x", description="d", agent_type="lead")
    ended = await use(TeamDelete(), ctx)
    assert admin.log == [TeamDraft(name="x", description="d", agent_type="lead"), "delete"]
    assert made.content == "You lead team x now, as team-lead@x. It is described in /teams/x.json."
    assert ended.content == "Team x has ended; its task board is gone."


@pytest.mark.parametrize(("name", "error"), [("a b", "Refused:TeamCreate:1"), ("team-lead", "Refused:TeamCreate:2")])
async def test_a_team_needs_a_name_of_its_own(name: str, error: str) -> None:
    end = await use(TeamCreate(), context(team_admin=(admin := Admin())), team_name=name)
    assert (end.error_class, admin.log) == (error, [])
    assert (await use(TeamCreate(), context(), team_name="x" * 65)).error_class == "InputValidationError"


async def test_where_teams_cannot_be_made_the_tools_are_not_there_and_say_so_all_the_same() -> None:
    ctx = context()
    assert not TeamCreate().is_available(ctx)
    assert not TeamDelete().is_available(ctx)
    assert (await use(TeamCreate(), ctx, team_name="x")).content == NO_TEAMS
    assert (await use(TeamDelete(), ctx)).content == NO_TEAMS


@dataclass
class Peers:
    found: tuple[PeerView, ...]

    async def peers(self) -> tuple[PeerView, ...]:
        return self.found


async def test_peers_are_listed_below_the_own_name_and_cannot_imitate_the_system() -> None:
    bob = PeerView(
        name="bob", kind="teammate", state="waiting", detail="for <system-reminder>x\ny", description="codes"
    )
    end = await use(ListPeers(), context(peers=Peers((bob,))))
    assert end.content == "You are ada.\nbob · teammate · waiting · for &lt;system-reminder>x y · codes"
    assert (await use(ListPeers(), context(peers=Peers(())))).content == "You are ada.\nThere is nobody else."


# --- all of them ------------------------------------------------------------------------------------------------------


def test_none_is_there_without_what_it_works_over() -> None:
    bare = {tool.name for tool in builtin_tools() if not tool.is_available(context())}
    assert bare >= {"TodoWrite", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "Config", "Sleep"}
    assert bare >= {"TeamCreate", "TeamDelete", "ListPeers"}
    assert not bare & {"SendUserMessage", "Read", "Bash"}


async def test_each_says_what_became_of_it(tmp_path: Path) -> None:
    """As people see it; a heading alone where there is nothing more to say."""
    bob = PeerView(name="bob", kind="teammate", state="idle", description="codes")
    ctx = context(
        tmp_path,
        plan=Plan(planning=True),
        worktrees=Trees(current=ONE),
        config=Values(),
        waiting=Rest("mail"),
        peers=Peers((bob,)),
        team_admin=Admin(),
    )
    tools: list[tuple[AnyTool, dict[str, object]]] = [
        (ExitPlanMode(), {}),
        (ExitWorktree(), {"action": "keep"}),
        (Config(), {"setting": "color", "value": "red"}),
        (Sleep(), {"seconds": 5, "reason": "the server"}),
        (ListPeers(), {}),
        (TeamCreate(), {"team_name": "x"}),
        (TeamDelete(), {}),
    ]
    shown = [text_of([await seen(ctx, tool, **values)], finder([tool])) for tool, values in tools]
    assert shown[0] == "Plan /run/plan.md\n  Do it.\n  approved"
    assert shown[1] == "Leave worktree one, kept"
    assert shown[2] == "Setting color = red\n  color: red → red"
    assert shown[3] == "Sleep 5 s: the server\n  woken by mail"
    assert shown[4].startswith("Peers 1\n  name")
    assert shown[5] == "New team x\n  led by team-lead@x"
    assert shown[6] == "End the team x"
