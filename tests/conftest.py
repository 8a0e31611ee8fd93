"""For all tests: where everything that full coverage wants is installed, nothing may be skipped; drawn examples are
the same in every run, on machines of any speed.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

NOTHING_SKIPPED = os.environ.get("RETINUE_CI") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped test is a test that was not run; with RETINUE_CI=1 that is a failure."""
    report = yield
    if NOTHING_SKIPPED and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and RETINUE_CI=1 allows no skip: {report.longrepr}"
    return report
