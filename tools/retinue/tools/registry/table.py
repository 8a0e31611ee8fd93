"""All tools that come with the product: the single source of truth.

Read by the build, too: nothing of ours is imported here.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """`folder` lies below `retinue.tools`; its `tool.py` has a class called `name`, as the tool is.

    A tool with a `gate` is there only where that feature was built in.
    """

    group: str
    folder: str
    name: str
    gate: str = ""


BASE_TOOLS: tuple[Entry, ...] = (
    Entry("files", "files.read", "Read"),
    Entry("files", "files.edit", "Edit"),
    Entry("files", "files.write", "Write"),
    Entry("files", "files.notebook_edit", "NotebookEdit"),
    Entry("files", "files.glob", "Glob"),
    Entry("files", "files.grep", "Grep"),
    Entry("shell", "shell.bash", "Bash"),
    Entry("shell", "shell.task_output", "TaskOutput"),
    Entry("shell", "shell.task_stop", "TaskStop"),
    Entry("network", "web.fetch", "WebFetch"),
    Entry("network", "web.search", "WebSearch"),
    Entry("agents", "team.agent", "Agent"),
    Entry("agents", "team.send_message", "SendMessage"),
    Entry("agents", "team.task_create", "TaskCreate"),
    Entry("agents", "team.task_get", "TaskGet"),
    Entry("agents", "team.task_list", "TaskList"),
    Entry("agents", "team.task_update", "TaskUpdate"),
    Entry("agents", "team.team_create", "TeamCreate"),
    Entry("agents", "team.team_delete", "TeamDelete"),
    Entry("agents", "team.list_peers", "ListPeers", gate="ListPeers"),
    Entry("people", "people.ask_user_question", "AskUserQuestion"),
    Entry("people", "people.todo_write", "TodoWrite"),
    Entry("people", "people.send_user_message", "SendUserMessage"),
    Entry("system", "system.enter_plan_mode", "EnterPlanMode"),
    Entry("system", "system.exit_plan_mode", "ExitPlanMode"),
    Entry("system", "system.enter_worktree", "EnterWorktree"),
    Entry("system", "system.exit_worktree", "ExitWorktree"),
    Entry("system", "system.config", "Config"),
    Entry("system", "system.sleep", "Sleep", gate="Sleep"),
    Entry("extension", "lsp", "LSP"),
    Entry("extension", "extension.tool_search", "ToolSearch"),
    Entry("extension", "extension.skill", "Skill"),
    Entry("extension", "extension.list_mcp_resources", "ListMcpResources"),
    Entry("extension", "extension.read_mcp_resource", "ReadMcpResource"),
    Entry("extension", "extension.repl", "REPL", gate="REPL"),
    Entry("system", "system.snip", "Snip", gate="Snip"),
)

SEARCH = frozenset({"Glob", "Grep"})
"""Needless where the shell has a search of its own."""

SIMPLE = frozenset({"Bash", "Read", "Edit"})
"""All that the simple mode has."""

WRAPPED_BY_REPL = frozenset({"Read", "Write", "Edit", "Glob", "Grep", "Bash", "NotebookEdit", "Agent"})
"""What the REPL's own functions do: in its mode they are reached through it alone."""

NESTED_LOSES = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TeamCreate", "TeamDelete"})
"""What an agent of an agent must not have: it speaks to its parent alone, and leads nobody."""

BACKGROUND_KEEPS = frozenset(
    {"Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep", "Bash", "TaskOutput", "TaskStop", "REPL", "LSP"}
    | {"WebFetch", "WebSearch", "TodoWrite", "Skill", "ToolSearch", "EnterWorktree", "ExitWorktree"}
    | {"Agent", "SendMessage"}
)
"""All that an agent has for which nobody waits. What asks people, or changes the team behind their backs, is not."""
