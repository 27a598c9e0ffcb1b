from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.debian import NotToBeHad, environment_of, unpacked


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium."""
    try:
        folder = unpacked("chromium")
    except NotToBeHad as error:
        pytest.skip(str(error))
    with sync_playwright() as playwright:
        # Root may not have its sandbox; what it shows is our own page.
        opened = playwright.chromium.launch(
            executable_path=folder / "usr" / "lib" / "chromium" / "chromium",
            env={**environment_of(folder)},
            args=["--no-sandbox"] if os.getuid() == 0 else [],
        )
        yield opened
        opened.close()
