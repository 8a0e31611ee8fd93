"""Everything of a run that touches git: the user's repository, the Depot, worktrees, checkpoints, rescue."""
