"""The team spec: one YAML document that is read, checked and explained as a whole.

`load_spec` gives a `LoadedSpec` or raises one error that lists everything; `check_environment` then asks the machine.
"""

from __future__ import annotations

from retinue.orchestrator.spec.environment import EnvironmentReport, Probe, check_environment, repository_path
from retinue.orchestrator.spec.expand import Variables
from retinue.orchestrator.spec.limits import AgentLimits, TeamLimits
from retinue.orchestrator.spec.load import LoadedSpec, load_spec, load_spec_text
from retinue.orchestrator.spec.model import (
    AgentPermissions,
    AgentSpec,
    DoneWhen,
    Member,
    MergeSpec,
    ModelSpec,
    Permissions,
    RepoSpec,
    TaskSpec,
    TeamSpec,
    ToolsSpec,
)
from retinue.orchestrator.spec.problems import InvalidSpec, Mark, Problem
from retinue.orchestrator.spec.schema import spec_schema
from retinue.orchestrator.spec.starter import starter_spec
from retinue.orchestrator.spec.vocabulary import DEFINITIONS, NOT_SUPPORTED_YET, RESERVED_NAMES, TOOLS, NotYet

__all__ = [
    "DEFINITIONS",
    "NOT_SUPPORTED_YET",
    "RESERVED_NAMES",
    "TOOLS",
    "AgentLimits",
    "AgentPermissions",
    "AgentSpec",
    "DoneWhen",
    "EnvironmentReport",
    "InvalidSpec",
    "LoadedSpec",
    "Mark",
    "Member",
    "MergeSpec",
    "ModelSpec",
    "NotYet",
    "Permissions",
    "Probe",
    "Problem",
    "RepoSpec",
    "TaskSpec",
    "TeamLimits",
    "TeamSpec",
    "ToolsSpec",
    "Variables",
    "check_environment",
    "load_spec",
    "load_spec_text",
    "repository_path",
    "spec_schema",
    "starter_spec",
]
