"""The spec that `retinue init` writes: short, commented, and valid as it stands."""

from __future__ import annotations

_STARTER = """\
# A team for retinue. Check it with `retinue validate team.yaml`, start it with `retinue up team.yaml`.
# Every key is explained in docs/spec.md; `retinue schema` prints a JSON Schema for your editor.
version: 1
name: my-team

# The repository to work in: by default the one that you stand in, from its last commit.
# Each agent gets a worktree of its own; your checkout is not touched.
repo:
  base: head            # or a branch, a tag, a commit, or `worktree` to include what is not committed
  setup: []             # commands that prepare each worktree, as in [npm ci]

# PROVIDER:NAME. The key is read from ANTHROPIC_API_KEY; `script:FILE` runs offline on a scripted model.
model: anthropic:claude-sonnet-5-5

agents:
  lead:
    definition: lead    # plans, hands out work, answers questions
  coder:
    definition: coder
    replicas: 2         # becomes coder-1 and coder-2
  reviewer:
    definition: reviewer  # reads and reports; has no Edit and no Write

tasks:
  - id: example
    subject: Say here in one line what has to be done
    description: |
      Say here what whoever works on it has to know: where, how, and how to tell that it works.
    owner: coder-1
    # done_when: make test          # has to succeed before the work counts
  - id: review
    subject: Review what was done, and report what is wrong
    description: |
      Send each finding to coder-1 with SendMessage, and say so when there is none. Change no file: the task is
      completed without one.
    owner: reviewer
    blocked_by: [example]

# Without a rule, agents run Bash commands that only read, and `acceptEdits` lets them edit files in their worktrees.
# Rules allow other commands: Bash(make test) this one, Bash(npm run:*) all that begin so.
permissions:
  mode: acceptEdits
  allow:
    - Bash(git add:*)
    - Bash(git commit:*)
    # - Bash(make test)

merge:
  strategy: merge       # or rebase; none leaves the work on the agents' branches
  # verify: make test   # has to succeed on the merged state

# The run stops at the first limit that is reached.
limits:
  usd: 5
  turns: 200
  wall: 60m
"""


def starter_spec() -> str:
    return _STARTER
