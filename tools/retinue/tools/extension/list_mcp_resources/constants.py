"""Limits of ListMcpResources."""

from __future__ import annotations

MOST_RESOURCES = 500
