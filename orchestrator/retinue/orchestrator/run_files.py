"""The files of one run's directory that every process of the run reads: the plan, and what only the owner may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import SecretStr

from retinue.agents.boot import AgentBoot
from retinue.agents.mail.envelopes import TEAM
from retinue.agents.model.messages import Wire
from retinue.agents.model.port import ModelPort
from retinue.agents.model.replay import Recording
from retinue.agents.model.router import ModelSettings, open_model
from retinue.orchestrator.ledger.recording import LedgerRecording
from retinue.orchestrator.sandboxing import CHECKS
from retinue.orchestrator.state.paths import RunDir, StateDir, write_private
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.workspaces.facts import RunPaths
from retinue.tools.errors import StateError
from retinue.tools.shell.environment import GitIdentity, tool_environment


class PrivateEnv(Wire):
    """What the launching shell lent to the run. Lies in a 0600 file, is never recorded, and is never passed on whole.

    Credentials are in it only while a run that needs them is live: the end of the run takes them out, `resume` lends
    them again.

    base    variables that tools may see (PATH, HOME, language, time zone)
    tools   `env` of the spec with its variables filled in, by agent name; under `team` what is for all
    mcp     `env` of MCP servers, by their name
    secrets values that no record may show
    """

    base: dict[str, str]
    tools: dict[str, dict[str, str]] = {}
    mcp: dict[str, dict[str, str]] = {}
    secrets: tuple[str, ...] = ()
    api_key: str | None = None
    auth_token: str | None = None
    base_url: str | None = None
    search_key: str | None = None


GIT_CONFIG = """\
# The only configuration of agents' git besides that of their own repository.
[gc]
	auto = 0
[repack]
	updateServerInfo = false
[diff]
	autoRefreshIndex = false
[advice]
	detachedHead = false
"""
KEPT = ("PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME")


def lend(env: Mapping[str, str], tools: Mapping[str, Mapping[str, str]], secrets: tuple[str, ...]) -> PrivateEnv:
    """What of the launching environment goes with the run, credentials apart."""
    return PrivateEnv(
        base={name: value for name, value in env.items() if name in KEPT or name.startswith("LC_")},
        tools={name: dict(own) for name, own in tools.items()},
        secrets=secrets,
        base_url=env.get("ANTHROPIC_BASE_URL") or None,
    )


@dataclass(frozen=True)
class RunFiles:
    """What a launch wrote into one run's directory. Nothing of it changes afterwards but the credentials."""

    dir: RunDir

    @classmethod
    def of(cls, run_dir: str) -> RunFiles:
        return cls(RunDir(Path(run_dir)))

    @property
    def git_config(self) -> Path:
        return self.dir.root / "gitconfig"

    @cached_property
    def plan(self) -> LaunchPlan:
        try:
            return LaunchPlan.model_validate_json((self.dir.root / "plan.json").read_bytes())
        except FileNotFoundError:
            raise StateError(f"{self.dir.root} holds no plan: the launch of this run did not get far enough") from None

    @cached_property
    def private(self) -> PrivateEnv:
        return self._read_private()

    def write(self, plan: LaunchPlan, private: PrivateEnv) -> None:
        """The plan comes last: a directory that has one is complete."""
        write_private(self.dir.env, private.model_dump_json())
        write_private(self.git_config, GIT_CONFIG)
        write_private(self.dir.root / "plan.json", plan.model_dump_json())

    def lend_credentials(self, env: Mapping[str, str]) -> None:
        """For a run that starts or goes on: keys of the shell that says so, for models and a search that need one."""
        models = {ref for member in self.plan.members for ref in (member.model, member.small_model)}
        of_model = any(ref.startswith("anthropic:") for ref in models)
        endpoint = self.plan.settings.web.search.endpoint
        of_search = endpoint.key_env if endpoint is not None else None
        if not of_model and of_search is None:
            return
        key = env.get("ANTHROPIC_API_KEY") or None if of_model else None
        token = env.get("ANTHROPIC_AUTH_TOKEN") or None if of_model else None
        search = env.get(of_search) or None if of_search is not None else None
        private = self._read_private()
        known = tuple(v for v in (key, token, search) if v)
        lent = private.model_copy(
            update={
                "api_key": key,
                "auth_token": token,
                "search_key": search,
                "base_url": env.get("ANTHROPIC_BASE_URL") or private.base_url,
                "secrets": tuple(dict.fromkeys((*private.secrets, *known))),
            }
        )
        write_private(self.dir.env, lent.model_dump_json())

    def forget_credentials(self) -> None:
        """The run is over, or stopped: nothing of it needs a key any more."""
        private = self._read_private()
        keys = {v for v in (private.api_key, private.auth_token, private.search_key) if v}
        if keys:
            rest = tuple(s for s in private.secrets if s not in keys)
            gone = {"api_key": None, "auth_token": None, "search_key": None}
            kept = private.model_copy(update={**gone, "secrets": rest})
            write_private(self.dir.env, kept.model_dump_json())

    def _read_private(self) -> PrivateEnv:
        return PrivateEnv.model_validate_json(self.dir.env.read_bytes())

    def environment_of(self, boot: AgentBoot, owner: str) -> dict[str, str]:
        """The environment of an agent's tools; `owner` is the member whose `env` of the spec counts."""
        return self._environment(boot, owner, boot.agent, own_worktree=boot.workspace.isolation == "worktree")

    def environment_of_checks(self, boot: AgentBoot) -> dict[str, str]:
        """The environment of commands that run in the verify worktree, in the name of `boot`."""
        return self._environment(boot, TEAM, CHECKS, own_worktree=True)

    def _environment(self, boot: AgentBoot, owner: str, user: str, *, own_worktree: bool) -> dict[str, str]:
        # The real place: a sandbox shows that, and not the links that lead to it.
        tmp = self.dir.tmp.resolve() / user
        tmp.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tool_environment(
            self.private.base,
            home=Path(self.private.base.get("HOME", "/")),
            tmp=tmp,
            identity=GitIdentity(boot.name, f"{boot.name}@{boot.run}.retinue.invalid"),
            spec_env=self.private.tools.get(owner, {}),
            git_config=self.git_config.resolve(),
            git_ceilings=self._git_ceilings() if own_worktree else (),
        )

    def _git_ceilings(self) -> tuple[Path, ...]:
        """The folder of all worktrees, and the one that the verify worktree lies in."""
        root = self.dir.root.resolve()
        return RunPaths(root).worktrees, root

    def open_model(self, ref: str) -> ModelPort:
        plan, private = self.plan, self.private
        settings = ModelSettings(
            base_url=plan.endpoints.get(ref) or private.base_url,
            api_key=SecretStr(private.api_key) if private.api_key else None,
            auth_token=SecretStr(private.auth_token) if private.auth_token else None,
        )
        return open_model(ref, settings, folder=Path(plan.script_folder), recording=self._recording)

    def _recording(self, run: str) -> Recording:
        """Of an earlier run beside this one."""
        return LedgerRecording(StateDir(self.dir.root.parent.parent).find(run).ledger)
