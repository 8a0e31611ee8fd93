"""All tools that come with the product: the single source of truth."""

from __future__ import annotations

from retinue.tools.base import AnyTool
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.glob.tool import Glob
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.notebook_edit.tool import NotebookEdit
from retinue.tools.files.read.tool import Read
from retinue.tools.files.write.tool import Write
from retinue.tools.shell.bash.tool import Bash
from retinue.tools.shell.task_output.tool import TaskOutput
from retinue.tools.shell.task_stop.tool import TaskStop
from retinue.tools.team.agent.tool import Agent
from retinue.tools.team.send_message.tool import SendMessage
from retinue.tools.team.task_create.tool import TaskCreate
from retinue.tools.team.task_get.tool import TaskGet
from retinue.tools.team.task_list.tool import TaskList
from retinue.tools.team.task_update.tool import TaskUpdate


def builtin_tools() -> tuple[AnyTool, ...]:
    """One of each, in the order of their groups; the pool sorts them for the model."""
    return (
        Read(),
        Edit(),
        Write(),
        NotebookEdit(),
        Glob(),
        Grep(),
        Bash(),
        TaskOutput(),
        TaskStop(),
        Agent(),
        SendMessage(),
        TaskCreate(),
        TaskGet(),
        TaskList(),
        TaskUpdate(),
    )
