"""Hosts of public documentation whose pages need no permission; any rule beats this list.

Each serves what its own authors wrote, so nothing that an agent asks of it reaches anybody else.
"""

from __future__ import annotations

PREAPPROVED = frozenset(
    (
        "developer.mozilla.org",
        "doc.rust-lang.org",
        "docs.djangoproject.com",
        "docs.docker.com",
        "docs.oracle.com",
        "docs.pytest.org",
        "docs.python.org",
        "docs.ray.io",
        "docs.swift.org",
        "git-scm.com",
        "go.dev",
        "kotlinlang.org",
        "kubernetes.io",
        "learn.microsoft.com",
        "nodejs.org",
        "peps.python.org",
        "pkg.go.dev",
        "react.dev",
        "www.postgresql.org",
        "www.sqlite.org",
        "www.typescriptlang.org",
    )
)
