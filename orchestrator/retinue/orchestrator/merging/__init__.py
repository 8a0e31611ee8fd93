"""How a team's work becomes one line of history."""
