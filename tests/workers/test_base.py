"""Reports of jobs."""

import time

from gradveil.workers.base import REPORT_SECONDS, throttled


def test_few_reports_pass_and_the_last_one_always() -> None:
    seen: list[tuple[int, int]] = []
    report = throttled(lambda done, total: seen.append((done, total)))
    started = time.monotonic()
    for step in range(1, 1001):
        report(step, 1000)
    spent = time.monotonic() - started
    assert seen[0] == (1, 1000)
    assert seen[-1] == (1000, 1000)
    assert len(seen) <= 3 + spent / REPORT_SECONDS


def test_a_report_after_a_pause_passes() -> None:
    seen: list[int] = []
    report = throttled(lambda done, _: seen.append(done))
    report(1, 9)
    report(2, 9)
    time.sleep(1.5 * REPORT_SECONDS)
    report(3, 9)
    assert seen == [1, 3]
