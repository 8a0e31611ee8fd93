"""`python -m retinue`, the same as `retinue`."""

from __future__ import annotations

import sys

from retinue.orchestrator.cli.main import main

sys.exit(main())
