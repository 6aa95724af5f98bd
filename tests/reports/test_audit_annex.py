"""The annex covers the four kinds of attack, run or not."""

from gradveil.reports.audit_annex import make_annex
from tests.reports.audit_records import make_record


def test_only_reconstruction_is_run() -> None:
    risks = make_annex(make_record())
    assert [(risk.name, risk.scope, risk.run) for risk in risks] == [
        ("Reconstruction", "in scope", "run"),
        ("Membership inference", "not in scope", "not run"),
        ("Attribute inference", "not in scope", "not run"),
        ("Model inversion", "not in scope", "not run"),
    ]
    assert all(risk.limits for risk in risks)
    assert risks[0].count == "6 images, 47 of 48 attacks with a result"
