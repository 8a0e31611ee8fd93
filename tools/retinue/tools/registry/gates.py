"""Which features this build has. A build with others replaces this file, and leaves out what is off.

Read by the build, too: nothing is imported here.
"""

GATES: dict[str, bool] = {
    "REPL": True,
    "ListPeers": True,
    "Sleep": True,
    "Snip": False,
}
