"""Every exception that this product raises on purpose, named by who must act.

RetinueError
├── SpecError           the author of a spec, a setting or a flag
├── EnvironmentProblem  the owner of the machine (git too old, no Ray, disk full)
├── StateError          the person at the terminal: no such run, run is live, nothing to land
├── ToolError           the model: the text becomes an error result
├── Aborted             nobody: work was called off from outside
└── InvariantBroken     us: a state machine was given what its state cannot take
"""

from __future__ import annotations


class RetinueError(Exception):
    """Base of all; caught once, at the CLI and at each actor's edge. One positional message: they pickle."""

    exit_code = 1


class SpecError(RetinueError):
    """The user's YAML, settings or flags are wrong; the message says where and what to write."""

    exit_code = 2


class EnvironmentProblem(RetinueError):
    """The machine lacks something; the message says what, and what to do about it."""

    exit_code = 3


class StateError(RetinueError):
    """A run, ref or worktree is not in the state that the command needs; the message names it and the remedy."""

    exit_code = 2


class ToolError(RetinueError):
    """A tool could not do its work; the text goes to the model as an error result."""


class Aborted(RetinueError):
    """Work was called off from outside, for the reason in the message."""

    exit_code = 130


class InvariantBroken(RetinueError):
    """A bug of ours: a state machine was given an event that its state cannot take."""
