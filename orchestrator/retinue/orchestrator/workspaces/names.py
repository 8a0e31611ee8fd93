"""Names of agents, branches and refs: one place says what they look like."""

from __future__ import annotations

import re

from retinue.tools.errors import SpecError

TIP = "refs/heads/tip"
BASE = "refs/retinue/base"
TEAM_TIP = "refs/remotes/team/tip"
RESERVED = frozenset({"result", "tip", "base", "team", "human"})

_AGENT = re.compile(r"([a-z][a-z0-9-]{0,39})(~[0-9]{1,6})?")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_BRANCH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def check_agent(agent_id: str) -> str:
    """An agent's name, or its id `<name>~<n>`, back unchanged."""
    match = _AGENT.fullmatch(agent_id)
    if match is None or match[1] in RESERVED:
        raise SpecError(
            f"agent name {agent_id!r} cannot be used: write a lower-case letter, then at most 39 lower-case letters, "
            f"digits or '-', and none of {', '.join(sorted(RESERVED))}"
        )
    return agent_id


def check_run(run: str) -> str:
    if not _RUN.fullmatch(run):
        raise SpecError(f"run id {run!r} cannot be used: write letters, digits, '-' and '_', at most 80")
    return run


def is_branch(branch: str) -> bool:
    """Stricter than git: only what needs no quoting anywhere."""
    parts = branch.split("/")
    return all(
        _BRANCH_PART.fullmatch(part) and ".." not in part and not part.endswith((".", ".lock")) for part in parts
    )


def is_sha(text: str) -> bool:
    return _SHA.fullmatch(text) is not None


def ref_name(agent_id: str) -> str:
    """`~` is not allowed in a ref; names have no dot, so this stays unique."""
    return agent_id.replace("~", ".")


def agent_branch(run: str, agent_id: str) -> str:
    """The branch that an agent starts on."""
    return f"retinue/{run}/{ref_name(agent_id)}/work"


def checkpoint_ref(agent_id: str) -> str:
    return f"refs/retinue/checkpoint/{ref_name(agent_id)}"


def submitted_ref(agent_id: str) -> str:
    return f"refs/retinue/submitted/{ref_name(agent_id)}"


def rescue_prefix(agent_id: str) -> str:
    return f"refs/retinue/rescue/{ref_name(agent_id)}"


def pin_ref(run: str) -> str:
    return f"refs/retinue/{run}/base"


def incoming_ref(run: str) -> str:
    return f"refs/retinue/{run}/in"


def result_branch(run: str) -> str:
    return f"retinue/{run}/result"


def result_ref(run: str) -> str:
    return f"refs/heads/{result_branch(run)}"
