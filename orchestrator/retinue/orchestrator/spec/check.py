"""Whether the parts of a well-formed spec fit together. Pure: looks at nothing but the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from retinue.orchestrator.spec.fields import NAME_EXPECTED, NAME_PATTERN
from retinue.orchestrator.spec.model import ModelSpec, TeamSpec
from retinue.orchestrator.spec.problems import Path, Problem, listed, nearest, quoted
from retinue.orchestrator.spec.rules import check_rule, check_tool_pattern
from retinue.orchestrator.spec.vocabulary import DEFINITIONS, RESERVED_NAMES

AT_MOST_OF_A_KIND = 100
_NAME = re.compile(NAME_PATTERN + r"\Z")


def check(spec: TeamSpec) -> list[Problem]:
    """All problems, each with its path in the document; the places are filled in by the loader."""
    return [problem for find in _CHECKS for problem in islice(find(spec), AT_MOST_OF_A_KIND)]


def _agent_names(spec: TeamSpec) -> Iterator[Problem]:
    for key, agent in spec.agents.items():
        path: Path = ("agents", key)
        name = key if agent.replicas == 1 else f"{key}-{agent.replicas}"
        if key in RESERVED_NAMES:
            what = f"the name {quoted(key)} is reserved"
            yield Problem(
                "team", path, what, key, remedy=f"choose another than {', '.join(RESERVED_NAMES)}", on_key=True
            )
        elif not _NAME.match(key):
            what = f"expected {NAME_EXPECTED}, found {quoted(key)}"
            yield Problem("value", path, what, key, suggestion=_as_name(key), on_key=True)
        elif not _NAME.match(name):
            what = f"with replicas the name becomes {quoted(name)}, which is longer than 40"
            yield Problem("value", path, what, key, remedy="choose a shorter one", on_key=True)


def _as_name(key: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:40]
    return name if len(key) <= 40 and _NAME.match(name) else ""


def _agent_names_once(spec: TeamSpec) -> Iterator[Problem]:
    keys: dict[str, str] = {}
    for name, key, _ in spec.names():
        first = keys.setdefault(name, key)
        if first != key:
            replicated, other = (first, key) if spec.agents[first].replicas > 1 else (key, first)
            what = f"the name {quoted(name)} is also a replica of {quoted(replicated)}"
            yield Problem("duplicate", ("agents", other), what, name, remedy="rename one of the two", on_key=True)


def _leads(spec: TeamSpec) -> Iterator[Problem]:
    leads = [key for key, agent in spec.agents.items() if agent.effective_role == "lead"]
    for key in leads:
        if spec.agents[key].replicas > 1:
            what = f"a team has one lead, and {quoted(key)} has {spec.agents[key].replicas} replicas"
            yield Problem("team", ("agents", key, "replicas"), what, remedy="remove replicas, or write role: teammate")
    for key in leads[1:]:
        what = f"a team has one lead, and {quoted(leads[0])} is it"
        yield Problem("team", ("agents", key), what, remedy="write role: teammate for one of the two", on_key=True)


def _definitions(spec: TeamSpec) -> Iterator[Problem]:
    for key, agent in spec.agents.items():
        name = agent.definition
        if name not in DEFINITIONS and "/" not in name and not name.endswith(".md"):
            what = f"unknown definition {quoted(name)}"
            allowed = (*DEFINITIONS, "the path of a .md file")
            path = ("agents", key, "definition")
            yield Problem("value", path, what, name, allowed, nearest(name, DEFINITIONS))


def _models(spec: TeamSpec) -> Iterator[Problem]:
    for key, agent in spec.agents.items():
        if agent.model is not None:
            yield from _model(agent.model, ("agents", key, "model"))
    if spec.small_model is not None:
        yield from _model(spec.small_model, ("small_model",))
    if spec.model is not None:
        yield from _model(spec.model, ("model",))
        return
    without = [key for key, agent in spec.agents.items() if agent.model is None]
    if without:
        who = "every agent" if len(without) == len(spec.agents) else listed(without[:5])
        what = f'the key "model" is missing for {who}'
        yield Problem(
            "missing", (), what, remedy="write model: PROVIDER:NAME at the top, as in anthropic:claude-sonnet-5-5"
        )


def _model(model: ModelSpec, path: Path) -> Iterator[Problem]:
    if model.provider != "anthropic" and model.base_url is not None:
        what = f"a {model.provider} model has no server"
        yield Problem(
            "value", (*path, "base_url"), what, remedy="remove base_url, or write use: anthropic:NAME", on_key=True
        )


def _rules(spec: TeamSpec) -> Iterator[Problem]:
    places = [((), spec.permissions)] + [(("agents", key), agent.permissions) for key, agent in spec.agents.items()]
    for place, permissions in places:
        for behavior in ("allow", "ask", "deny"):
            rules: tuple[str, ...] = getattr(permissions, behavior)
            for index, rule in enumerate(rules):
                path: Path = (*place, "permissions", behavior, index)
                yield from check_rule(rule, path, denies=behavior == "deny")


def _tools(spec: TeamSpec) -> Iterator[Problem]:
    for key, agent in spec.agents.items():
        for index, pattern in enumerate(agent.tools.allow or ()):
            yield from check_tool_pattern(pattern, ("agents", key, "tools", "allow", index), denies=False)
        for index, pattern in enumerate(agent.tools.deny):
            yield from check_tool_pattern(pattern, ("agents", key, "tools", "deny", index), denies=True)


def _searching(spec: TeamSpec) -> Iterator[Problem]:
    search = spec.web.search
    path: Path = ("web", "search")
    if len(search.ways) > 1:
        what = f"more than one way to search is given: {listed(search.ways)}"
        yield Problem("value", path, what, remedy="remove all but one", on_key=True)
    asked = [spec.small_model] if spec.small_model else [agent.model or spec.model for agent in spec.agents.values()]
    without = next((model for model in asked if model is not None and model.provider != "anthropic"), None)
    if search.server_side and without is not None:
        what = f"a {without.provider} model has no search of its own"
        remedy = "remove it, or write small_model: anthropic:NAME"
        yield Problem("value", (*path, "server_side"), what, remedy=remedy, on_key=True)


def _task_ids(spec: TeamSpec) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, task in enumerate(spec.tasks):
        if task.id in first:
            what = f"the id {quoted(task.id)} is already used by tasks[{first[task.id]}]"
            yield Problem("duplicate", ("tasks", index, "id"), what, task.id, remedy="ids are used once")
        first.setdefault(task.id, index)


def _owners(spec: TeamSpec) -> Iterator[Problem]:
    names = tuple(name for name, _, _ in spec.names())
    for index, task in enumerate(spec.tasks):
        owner = task.owner
        if owner is None or owner in names:
            continue
        path: Path = ("tasks", index, "owner")
        if owner in spec.agents:
            what = f"{quoted(owner)} is {spec.agents[owner].replicas} agents"
            remedy = (
                f"write one of {owner}-1 … {owner}-{spec.agents[owner].replicas}, or no owner so that any may claim it"
            )
            yield Problem("unknown_owner", path, what, owner, remedy=remedy)
        else:
            what = f"no agent is named {quoted(owner)}"
            yield Problem("unknown_owner", path, what, owner, names[:20], nearest(owner, names))


def _blockers(spec: TeamSpec) -> Iterator[Problem]:
    ids = tuple(task.id for task in spec.tasks)
    for index, task in enumerate(spec.tasks):
        for position, blocker in enumerate(task.blocked_by):
            path: Path = ("tasks", index, "blocked_by", position)
            if blocker not in ids:
                what = f"no task has the id {quoted(blocker)}"
                others = tuple(other for other in ids if other != task.id)[:20]
                yield Problem("unknown_task", path, what, blocker, others, nearest(blocker, others))
            elif task.blocked_by.index(blocker) != position:
                yield Problem(
                    "duplicate", path, f"{quoted(blocker)} is in the list twice", blocker, remedy="remove one"
                )


def _cycles(spec: TeamSpec) -> Iterator[Problem]:
    blockers = {task.id: tuple(task.blocked_by) for task in spec.tasks}
    for cycle in cycles_of(blockers):
        index = next(i for i, task in enumerate(spec.tasks) if task.id == cycle[0])
        arrows = " → ".join((*cycle, cycle[0]))
        who, remedy = "the tasks wait for each other", "take one of them out of blocked_by"
        if len(cycle) == 1:
            who, remedy = "the task waits for itself", "take it out of blocked_by"
        yield Problem("cycle", ("tasks", index, "blocked_by"), f"{who}: {arrows}", arrows, remedy=remedy)


def cycles_of(blockers: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """One cycle for each knot of tasks, from its first task in document order. Without recursion: lists may be long."""
    done: set[str] = set()
    found: list[tuple[str, ...]] = []
    for start in blockers:
        trail: list[str] = []
        pending = [(start, iter(blockers[start]))] if start not in done else []
        if pending:
            trail.append(start)
        while pending:
            node, rest = pending[-1]
            following = next(rest, None)
            if following is None:
                pending.pop()
                trail.pop()
                done.add(node)
            elif following in trail:
                found.append(_turned(tuple(trail[trail.index(following) :]), blockers))
            elif following in blockers and following not in done:
                trail.append(following)
                pending.append((following, iter(blockers[following])))
    return list(dict.fromkeys(found))


def _turned(cycle: tuple[str, ...], order: Mapping[str, object]) -> tuple[str, ...]:
    positions = list(order)
    first = min(range(len(cycle)), key=lambda i: positions.index(cycle[i]))
    return cycle[first:] + cycle[:first]


def _merging(spec: TeamSpec) -> Iterator[Problem]:
    merge = spec.merge
    if merge.into is not None and (merge.into == "retinue" or merge.into.startswith("retinue/")):
        what = f"branches under retinue/ belong to retinue, found {quoted(merge.into)}"
        yield Problem(
            "value", ("merge", "into"), what, merge.into, remedy="remove the key; the result is on retinue/RUN/result"
        )
    if merge.into is not None and spec.repo.base == "worktree":
        what = "work that starts from what is not committed lands on its own branch only"
        yield Problem(
            "value", ("merge", "into"), what, merge.into, remedy="remove the key; `retinue land RUN` takes the result"
        )
    if merge.strategy == "none" and merge.verify:
        what = "nothing is merged with strategy none, so nothing is verified"
        yield Problem(
            "value", ("merge", "verify"), what, remedy="remove verify, or choose merge or rebase", on_key=True
        )


def _something_to_do(spec: TeamSpec) -> Iterator[Problem]:
    if not spec.agents:
        yield Problem("team", ("agents",), "the team has no agents", remedy="name at least one", on_key=True)
    elif not spec.tasks and not any(agent.prompt for agent in spec.agents.values()):
        yield Problem("team", (), "the team has nothing to do", remedy="write tasks, or a prompt for an agent")


_CHECKS: tuple[Callable[[TeamSpec], Iterator[Problem]], ...] = (
    _agent_names,
    _agent_names_once,
    _leads,
    _definitions,
    _models,
    _rules,
    _tools,
    _searching,
    _task_ids,
    _owners,
    _blockers,
    _cycles,
    _merging,
    _something_to_do,
)
