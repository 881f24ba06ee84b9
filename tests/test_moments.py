"""Times as people read them."""

from __future__ import annotations

import time

import pytest

from nbckpt.runs.moments import local


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone can't be set here")
@pytest.mark.parametrize(
    ("zone", "text"),
    [("UTC0", "2026-11-29 12:00:01"), ("XXX-5:30", "2026-11-29 17:30:01")],
)
def test_time_is_told_in_the_zone_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, zone: str, text: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert local(1795953601.9) == text
    time.tzset()
