"""What an agent has of its own beside its conversation, in a whole agent: kept over deaths of its process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import AgentBoot, Rights, RuleSet, WorkspaceBoot
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.model.messages import AssistantBlock, ToolUseBlock
from retinue.agents.model.port import ModelRequest
from retinue.agents.own.settings import TIMEOUT
from retinue.agents.own.todos import REMIND_EVERY
from retinue.agents.records import RequestSent, StateKept, ToolFinished
from retinue.agents.steps import Timing
from retinue.tools.base import AnyTool
from retinue.tools.errors import ToolError
from retinue.tools.execution.calls import CallResult
from retinue.tools.files.write.tool import Write
from retinue.tools.people.ask_user_question.tool import AskUserQuestion
from retinue.tools.people.ports import HumanAnswers, HumanQuestion, PlanVerdict
from retinue.tools.people.todo_write.tool import TodoWrite
from retinue.tools.ports import BoardPort, TaskAnswer, TaskChange
from retinue.tools.system import planning
from retinue.tools.system.config.tool import Config
from retinue.tools.system.enter_plan_mode.tool import EnterPlanMode
from retinue.tools.system.enter_worktree.tool import EnterWorktree
from retinue.tools.system.exit_plan_mode.tool import ExitPlanMode
from retinue.tools.system.exit_worktree.tool import ExitWorktree
from retinue.tools.system.ports import WorktreeLoss, WorktreePlace
from retinue.tools.system.sleep.tool import Sleep
from retinue.tools.team.task_update.tool import TaskUpdate
from support.agents_scene import FACTS, Answers, Died, FreeLeases, Scene, a_boot, answer, human, prompt, until_idle
from support.calls import NoShell

OWN: tuple[AnyTool, ...] = (
    *(TodoWrite(), AskUserQuestion(), EnterPlanMode(), ExitPlanMode(), Config(), Sleep()),
    *(EnterWorktree(), ExitWorktree(), Write(), TaskUpdate()),
)


@dataclass
class Person:
    verdicts: list[PlanVerdict] = field(default_factory=list)
    answers: HumanAnswers | None = None
    plans: list[str] = field(default_factory=list)

    async def ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers | None:
        if self.answers is None:
            await asyncio.Event().wait()
        return self.answers

    async def approve(self, plan: str) -> PlanVerdict:
        self.plans.append(plan)
        return self.verdicts.pop(0)


@dataclass
class Trees:
    """Worktrees as folders."""

    folder: Path
    lost: WorktreeLoss = field(default_factory=WorktreeLoss)
    log: list[str] = field(default_factory=list)
    refuses: str = ""

    def kept(self) -> tuple[WorktreePlace, ...]:
        return ()

    async def make(self, name: str, base: str) -> WorktreePlace:
        self.log.append(f"make {name} at {base}")
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        return WorktreePlace(name=name, path=str(self.folder / name), branch=f"b/{name}")

    async def loss(self, place: WorktreePlace) -> WorktreeLoss:
        return self.lost

    async def rescue(self, place: WorktreePlace) -> tuple[str, ...]:
        if self.refuses:
            raise ToolError(self.refuses)
        self.log.append(f"rescue {place.name}")
        return ("refs/rescued",)

    async def remove(self, place: WorktreePlace) -> None:
        self.log.append(f"remove {place.name}")
        if (self.folder / place.name).is_dir():
            (self.folder / place.name).rmdir()


class Board:
    def __init__(self) -> None:
        self.changes: list[TaskChange] = []

    async def update(self, key: str, change: TaskChange) -> TaskAnswer:
        self.changes.append(change)
        return TaskAnswer(ok=True, text="changed")


@dataclass
class Own(Scene):
    """The scene with an agent that has tools of its own, allowed without a question."""

    person: Person | None = None
    trees: Trees | None = None
    tasks: BoardPort | None = None

    def agent(self) -> AgentLoop:
        ports = AgentPorts(self.model, self.ledger, self.purse, self.board, self.checkpoints)
        surroundings = ToolPorts(FreeLeases(), NoShell(), board=self.tasks, human=self.person, worktrees=self.trees)
        return assemble_agent(
            self.boot,
            list(self.ledger.records),
            ports,
            surroundings,
            FACTS,
            env={"HOME": "/home/nobody"},
            tools=(*self.world.tools(), *OWN),
            timing=self.timing,
        )

    def results(self) -> list[CallResult]:
        return [record.result for record in self.ledger.records if isinstance(record, ToolFinished)]

    def kept(self, name: str) -> list[object]:
        return [r.value for r in self.ledger.records if isinstance(r, StateKept) and r.name == name]


def use(tool: str, call_id: str, /, **values: object) -> ToolUseBlock:
    return ToolUseBlock.model_validate({"type": "tool_use", "id": call_id, "name": tool, "input": values})


def turns(*blocks: Iterable[AssistantBlock | str]) -> Answers:
    return Answers([answer(*each) for each in blocks])


def boot_in(folder: Path, mode: str = "acceptEdits", **changes: object) -> AgentBoot:
    root = folder / "w"
    root.mkdir(exist_ok=True)
    rules = (RuleSet(allow=("EnterPlanMode", "Config", "Note", "Tell"), deny=("Edit(/secret/**)",)),)
    rights = Rights.model_validate({"mode": mode, "rules": rules})
    workspace = WorkspaceBoot(root=str(root), isolation="worktree")
    return a_boot(rights=(rights,), workspace=workspace, run_dir=str(folder), **changes)


def said(requests: list[ModelRequest]) -> list[list[str]]:
    """The reminders beside each request that is new in it."""
    return [
        [block.text for block in request.messages[-1].content if "system-reminder" in getattr(block, "text", "")]
        for request in requests
    ]


async def again(scene: Own, model: Answers) -> Own:
    """A new process of the agent from its records, with another thing to do."""
    scene.model = model
    scene.stored(human(f"m{len(scene.ledger.records)}", "Go on."))
    await until_idle(scene)
    return scene


# --- the list ---------------------------------------------------------------------------------------------------------


def todo(status: str) -> dict[str, object]:
    return {"content": "Build", "status": status, "activeForm": "Building"}


async def test_the_list_is_there_again_in_the_next_process(tmp_path: Path) -> None:
    model = turns([use("TodoWrite", "a", todos=[todo("pending")])], ["done"])
    scene = Own(model, boot=boot_in(tmp_path)).stored(prompt())
    await until_idle(scene)
    await again(scene, turns([use("TodoWrite", "b", todos=[])], ["done"]))
    assert scene.results()[-1].data == {
        "old_todos": [{"content": "Build", "status": "pending", "active_form": "Building"}],
        "new_todos": [],
    }


async def test_a_list_that_is_left_alone_is_called_to_mind_and_one_that_is_done_is_not(tmp_path: Path) -> None:
    notes = [[use("Note", f"n{n}", text="x")] for n in range(REMIND_EVERY + 1)]
    model = turns([use("TodoWrite", "a", todos=[todo("in_progress")])], *notes, ["done"])
    scene = Own(model, boot=boot_in(tmp_path)).stored(prompt())
    await until_idle(scene)
    assert [n for n, texts in enumerate(said(model.requests), 1) if texts] == [1 + REMIND_EVERY]
    model = turns([use("TodoWrite", "b", todos=[todo("completed")])], *notes, ["done"])
    await again(scene, model)
    assert not any(texts for texts in said(model.requests)[1:])


# --- plan mode --------------------------------------------------------------------------------------------------------


async def test_who_plans_writes_the_plan_and_nothing_else_until_it_is_approved(tmp_path: Path) -> None:
    boot = boot_in(tmp_path)
    plan = tmp_path / "tool-results" / "ada~1" / "plan.md"
    person = Person([PlanVerdict(approved=False, feedback="Shorter."), PlanVerdict(approved=True)])
    model = turns(
        [use("EnterPlanMode", "a")],
        [use("Write", "b", file_path="x.txt", content="x"), use("Note", "c", text="x")],
        [use("Write", "d", file_path=str(plan), content="The plan.")],
        [use("ExitPlanMode", "e")],
        [use("ExitPlanMode", "f")],
        [use("Write", "g", file_path="x.txt", content="x"), use("ExitPlanMode", "h")],
        ["done"],
    )
    scene = Own(model, boot=boot, person=person).stored(prompt())
    await until_idle(scene)
    ends = {result.call_id: result for result in scene.results()}
    assert [c for c, result in ends.items() if result.denied] == ["b", "c"]
    assert not ends["d"].is_error
    assert plan.read_text() == "The plan."
    assert person.plans == ["The plan.", "The plan."]
    assert "Shorter." in ends["e"].content
    assert ends["f"].content.endswith("## Approved plan\nThe plan.")
    assert not ends["g"].is_error
    assert ends["h"].error_class == "Refused:ExitPlanMode:1"


async def test_plan_mode_survives_the_process_and_is_recalled(tmp_path: Path) -> None:
    boot = boot_in(tmp_path)
    scene = Own(turns([use("EnterPlanMode", "a")], ["thinking"]), boot=boot, person=Person()).stored(prompt())
    await until_idle(scene)
    notes = [[use("Write", f"n{n}", file_path="x.txt", content="x")] for n in range(6)]
    model = turns(*notes, ["done"])
    await again(scene, model)
    assert all(result.denied for result in scene.results() if result.name == "Write")
    file = str(tmp_path / "tool-results" / "ada~1" / "plan.md")
    short = f"<system-reminder>\n{planning.reminder(file, 6)}\n</system-reminder>"
    assert [texts for texts in said(model.requests) if texts] == [[short]]


async def test_once_left_it_stays_left_in_the_next_process(tmp_path: Path) -> None:
    person = Person([PlanVerdict(approved=True, plan="Another plan.")])
    model = turns([use("EnterPlanMode", "a")], [use("ExitPlanMode", "b")], ["done"])
    scene = Own(model, boot=boot_in(tmp_path), person=person).stored(prompt())
    await until_idle(scene)
    assert (tmp_path / "tool-results" / "ada~1" / "plan.md").read_text() == "Another plan."
    await again(scene, turns([use("Write", "c", file_path="x.txt", content="x")], ["done"]))
    assert not scene.results()[-1].is_error


async def test_an_agent_that_is_made_to_plan_is_told_at_once_and_goes_on_as_by_default(tmp_path: Path) -> None:
    person = Person([PlanVerdict(approved=True)])
    model = turns([use("Note", "a", text="x")], [use("ExitPlanMode", "b")], [use("Note", "c", text="y")], ["done"])
    scene = Own(model, boot=boot_in(tmp_path, "plan"), person=person).stored(prompt())
    await until_idle(scene)
    assert planning.instructions(str(tmp_path / "tool-results" / "ada~1" / "plan.md")) in said(model.requests)[0][0]
    assert [result.denied for result in scene.results()] == [True, False, False]
    await again(scene, turns([use("Note", "d", text="z")], ["done"]))
    assert [text for _, text in scene.world.notes] == ["y", "z"]


async def test_where_nobody_can_approve_a_plan_none_is_begun_and_none_is_approved(tmp_path: Path) -> None:
    scene = Own(turns([use("EnterPlanMode", "a")], ["done"]), boot=boot_in(tmp_path)).stored(prompt())
    await until_idle(scene)
    assert scene.results()[0].error_class == "NoSuchTool"
    scene = Own(turns([use("ExitPlanMode", "a")], ["done"]), boot=boot_in(tmp_path, "plan")).stored(prompt())
    await until_idle(scene)
    assert "nobody here can approve a plan" in scene.results()[0].content
    assert scene.kept("plan") == []


# --- settings and questions -------------------------------------------------------------------------------------------


async def test_a_setting_lasts_over_the_process_and_a_question_waits_as_long_as_it_says(tmp_path: Path) -> None:
    ask = {"question": "Way?", "header": "Way", "options": [{"label": "a"}, {"label": "b"}]}
    scene = Own(turns([use("Config", "a", setting=TIMEOUT, value="60s")], ["done"]), boot=boot_in(tmp_path)).stored(
        prompt()
    )
    await until_idle(scene)
    scene.person = Person(answers=HumanAnswers(answers={"Way?": "a"}))
    await again(
        scene, turns([use("AskUserQuestion", "b", questions=[ask]), use("Config", "c", setting=TIMEOUT)], ["done"])
    )
    answered, shown = scene.results()[-2:]
    assert answered.content == "The user answered:\n- Way?\n  a"
    assert shown.content.startswith(f"{TIMEOUT} = 60s")
    assert "waiting" in scene.board.states()


async def test_the_mode_is_never_set_without_a_person(tmp_path: Path) -> None:
    calls = [use("Config", "a", setting="permissions.defaultMode", value="acceptEdits")]
    scene = Own(turns(calls, ["done"]), boot=boot_in(tmp_path, "bypassPermissions")).stored(prompt())
    await until_idle(scene)
    assert (scene.results()[0].denied, scene.kept("settings")) == (True, [])


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_mail_wakes_a_sleeper_and_so_does_the_end(tmp_path: Path) -> None:
    async def never(seconds: float) -> None:
        await asyncio.Event().wait()

    model = turns([use("Sleep", "a", seconds=600)], [use("Sleep", "b", seconds=600)], ["done"])
    timing = Timing(clock=lambda: 0.0, sleep=never, chance=lambda: 0.0)
    scene = Own(model, boot=boot_in(tmp_path), timing=timing).stored(prompt())
    asleep = asyncio.Event()
    scene.board.on = lambda status: asleep.set() if status.detail.startswith("sleeps") else None
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await asleep.wait()
    asleep.clear()
    await agent.deliver(human("m", "Wake up."))
    await asleep.wait()
    await agent.drain()
    await running
    assert [result.content for result in scene.results()] == [
        "Woken: there is mail, which follows.",
        "Woken: this agent is to come to its end.",
    ]
    assert len(model.requests) == 2


# --- worktrees --------------------------------------------------------------------------------------------------------


async def test_calls_go_on_where_the_agent_is_also_in_the_next_process(tmp_path: Path) -> None:
    trees = Trees(tmp_path / "beside")
    model = turns(
        [use("EnterWorktree", "a", name="one")], [use("Write", "b", file_path="x.txt", content="1")], ["done"]
    )
    scene = Own(model, boot=boot_in(tmp_path), trees=trees).stored(prompt())
    await until_idle(scene)
    await again(scene, turns([use("Write", "c", file_path="y.txt", content="2")], ["done"]))
    assert sorted(path.name for path in (tmp_path / "beside/one").iterdir()) == ["x.txt", "y.txt"]
    assert list((tmp_path / "w").iterdir()) == []


async def test_what_rules_keep_it_from_at_home_they_keep_it_from_there(tmp_path: Path) -> None:
    calls = [use("Write", "b", file_path="secret/x.txt", content="1")]
    model = turns([use("EnterWorktree", "a", name="one")], calls, ["done"])
    scene = Own(model, boot=boot_in(tmp_path), trees=Trees(tmp_path / "beside")).stored(prompt())
    await until_idle(scene)
    assert scene.results()[-1].denied
    await again(scene, turns([use("Write", "c", file_path="secret/x.txt", content="1")], ["done"]))
    assert scene.results()[-1].denied


async def test_from_one_further_worktree_no_other_is_made(tmp_path: Path) -> None:
    trees = Trees(tmp_path / "beside")
    model = turns([use("EnterWorktree", "a", name="one")], [use("EnterWorktree", "b")], ["done"])
    scene = Own(model, boot=boot_in(tmp_path), trees=trees).stored(prompt())
    await until_idle(scene)
    assert scene.results()[-1].content.startswith("You are in the worktree one: leave it with ExitWorktree first")
    assert trees.log == ["make one at head"]


async def test_to_begin_to_plan_twice_is_to_begin_once(tmp_path: Path) -> None:
    model = turns([use("EnterPlanMode", "a")], [use("EnterPlanMode", "b")], ["done"])
    scene = Own(model, boot=boot_in(tmp_path), person=Person()).stored(prompt())
    await until_idle(scene)
    assert len({result.content for result in scene.results() if not result.denied}) == 1
    assert len(scene.kept("plan")) == 1


async def test_a_worktree_that_is_gone_is_left(tmp_path: Path) -> None:
    scene = Own(
        turns([use("EnterWorktree", "a", name="one")], ["done"]),
        boot=boot_in(tmp_path),
        trees=Trees(tmp_path / "beside"),
    ).stored(prompt())
    await until_idle(scene)
    (tmp_path / "beside/one").rmdir()
    await again(scene, turns([use("Write", "c", file_path="y.txt", content="2")], ["done"]))
    assert (tmp_path / "w/y.txt").read_text() == "2"


async def test_what_would_be_lost_is_rescued_before_and_without_that_nothing_is_removed(tmp_path: Path) -> None:
    trees = Trees(tmp_path / "beside", WorktreeLoss(files=1), refuses="no room")
    leave = [use("ExitWorktree", "b", action="remove", discard_changes=True)]
    model = turns([use("EnterWorktree", "a", name="one")], leave, ["done"])
    scene = Own(model, boot=boot_in(tmp_path), trees=trees).stored(prompt())
    await until_idle(scene)
    assert (scene.results()[-1].content, (tmp_path / "beside/one").is_dir()) == ("no room", True)
    trees.refuses = ""
    await again(scene, turns([use("ExitWorktree", "c", action="remove", discard_changes=True)], ["done"]))
    assert trees.log == ["make one at head", "rescue one", "remove one"]


async def test_work_is_handed_in_from_home_only(tmp_path: Path) -> None:
    board = Board()
    done = {"taskId": "1", "status": "completed"}
    model = turns(
        [use("EnterWorktree", "a", name="one"), use("TaskUpdate", "b", **done)],
        [use("TaskUpdate", "c", **done)],
        [use("ExitWorktree", "d", action="keep"), use("TaskUpdate", "e", **done)],
        ["done"],
    )
    scene = Own(model, boot=boot_in(tmp_path), trees=Trees(tmp_path / "beside"), tasks=board)  # type: ignore[arg-type]
    await until_idle(scene.stored(prompt()))
    ends = {result.call_id: result.content for result in scene.results()}
    assert ends["c"].startswith("You are in the worktree one, and work is handed in from your first one.")
    assert ends["e"] == "changed"
    assert len(board.changes) == 1


# --- deaths at every record -------------------------------------------------------------------------------------------


async def test_wherever_the_process_dies_the_list_the_plan_and_the_place_are_what_the_records_say(
    tmp_path: Path,
) -> None:
    """One story; its process dies before each of its records in turn, and goes on."""

    def story(requests: int) -> Answers:
        steps = [
            [use("TodoWrite", "a", todos=[todo("pending")])],
            [use("EnterWorktree", "b")],
            [use("EnterPlanMode", "c")],
            [use("ExitPlanMode", "d")],
            [use("ExitWorktree", "e", action="remove")],
            ["done"],
        ]
        return turns(*steps[requests:])

    async def play(dies_after: int | None) -> Own:
        folder = tmp_path / f"run-{dies_after}"
        folder.mkdir()
        scene = Own(
            story(0),
            boot=boot_in(folder),
            person=Person([PlanVerdict(approved=True)] * 3),
            trees=Trees(folder / "beside"),
        ).stored(prompt())
        scene.ledger.dies_after = dies_after
        try:
            await until_idle(scene)
        except (Died, ExceptionGroup):
            scene.ledger.dies_after = None
            closed = sum(record.kind == "step_closed" for record in scene.ledger.records)
            open_with_message = scene.agent().status().step - closed
            begun = any(r.kind == "tool_started" for r in scene.ledger.records[-4:]) if open_with_message else False
            scene.model = story(closed + (1 if begun else 0))
            await until_idle(scene)
        return scene

    whole = await play(None)
    for dies_after in range(2, len(whole.ledger.records)):
        scene = await play(dies_after)
        assert scene.kept("todos")[-1] == whole.kept("todos")[-1], dies_after
        assert scene.trees is not None
        last_place, last_plan = scene.kept("worktree")[-1], scene.kept("plan")[-1]
        assert isinstance(last_place, dict)
        assert isinstance(last_plan, dict)
        if last_place["place"] is None:
            assert list(scene.trees.folder.iterdir()) == [], dies_after
        assert sum(isinstance(r, RequestSent) for r in scene.ledger.records) >= 6, dies_after
