"""What an agent that plans is told: at the beginning, from time to time, and when it begins again. Pure."""

from __future__ import annotations

SHORT_EVERY = 5
FULL_EVERY = 25


def instructions(file: str) -> str:
    """All of it."""
    return (
        "You are in plan mode: look, think and write the plan, and change nothing else. Only what reads is allowed, "
        f"and changes of the plan's file: {file}\n"
        "1. Understand what is wanted, and read the code that it is about. Sub-agents can look at several things at "
        "once.\n"
        "2. Ask with AskUserQuestion what only a person can decide.\n"
        "3. Write the plan into that file, and nowhere else: what will be changed and where (paths), in which order, "
        "what exists already and can be used, and how it will be checked. Short enough to be read, full enough to be "
        "followed.\n"
        "4. Call ExitPlanMode when it is done: whoever decides reads the file and says yes or no."
    )


def again(file: str) -> str:
    """For one who planned before."""
    return (
        f"{file} holds the plan of an earlier time. Read it first. If what is wanted now is another thing, write the "
        "plan anew; if it is the same, change in it what has changed. Either way it must be true before ExitPlanMode."
    )


def reminder(file: str, requests: int) -> str:
    """What is said beside the request of that number since planning began, from 1; empty for most of them."""
    if requests < 1 or (requests - 1) % SHORT_EVERY:
        return ""
    if (requests - 1) % FULL_EVERY == 0:
        return instructions(file)
    return f"You are still in plan mode: change nothing but the plan, {file}. When it is done, call ExitPlanMode."
