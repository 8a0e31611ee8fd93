"""Which way of breaking a status or an error type of the Messages API is. Pure tables, shared by client and script."""

from __future__ import annotations

from retinue.agents.model.port import BreakKind

_BY_STATUS: dict[int, BreakKind] = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    404: "not_found",
    408: "dropped",
    409: "server_error",
    425: "server_error",
    429: "rate_limited",
    529: "overloaded",
}

SCRIPT_EXPECTATION = "script_expectation_error"

_BY_TYPE: dict[str, BreakKind] = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limited",
    "api_error": "server_error",
    "timeout_error": "server_error",
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "billing_error": "authentication",
    "not_found_error": "not_found",
    "invalid_request_error": "invalid_request",
    "request_too_large": "invalid_request",
    SCRIPT_EXPECTATION: "expectation",
}

_TYPE_BY_STATUS: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def reason_of_status(status: int) -> BreakKind:
    """What is not in the table: 5xx may go away by itself, other statuses do not."""
    return _BY_STATUS.get(status, "server_error" if status >= 500 else "invalid_request")


def reason_of_type(error_type: str | None) -> BreakKind | None:
    """None for a type that is not known."""
    return _BY_TYPE.get(error_type or "")


def type_of_status(status: int) -> str:
    """What a Messages API calls the error that it sends with this status."""
    return _TYPE_BY_STATUS.get(status, "api_error")
