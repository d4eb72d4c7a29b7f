# SPDX-License-Identifier: MIT

"""A plugin of pytest: writes what each test came to into the file that OUTCOMES
names, as known.sh wants it. What fails and is not in the file that LISTED names gets
a second chance."""

import os
import sys
import types

import pytest


def stand_in():
    """The suite's settings import two names of the SDK's own tooling, which is not
    in its package. An emulator needs neither."""
    def is_live():
        return False

    for name in ("devtools_testutils", "devtools_testutils.helpers", "devtools_testutils.azure_recorded_testcase"):
        module = types.ModuleType(name)
        module.is_live, module.get_credential = is_live, None
        sys.modules[name] = module


stand_in()
outcomes = {}


def known():
    with open(os.environ["LISTED"], encoding="utf-8") as file:
        return set(file.read().splitlines())


def place(nodeid):
    """The file and the test, whatever its parameters."""
    path, *_, test = nodeid.partition("[")[0].split("::")
    return path.removeprefix("tests/"), test


def pytest_collection_modifyitems(items):
    listed = known()
    for item in items:
        if ": ".join(place(item.nodeid)) not in listed:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_deselected(items):
    for item in items:
        outcomes[item.nodeid] = "for another account", ""


def pytest_runtest_logreport(report):
    """Is told of each test three times: before, itself, and after. One failure makes
    the test a failed one, unless it is run again."""
    if report.outcome == "rerun":
        outcomes.pop(report.nodeid, None)
        print(f"{report.nodeid} is run again: {message(report)}")
    elif report.failed and outcomes.get(report.nodeid, ("",))[0] != "failed":
        outcomes[report.nodeid] = "failed", message(report)
    elif report.skipped:
        outcomes[report.nodeid] = "skipped by the suite", reason(report)
    elif report.when == "call":
        outcomes[report.nodeid] = "passed", ""


def reason(report):
    """Why a test is skipped: pytest gives the file, the line and the reason."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(text.removeprefix("Skipped: ").split())


def message(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else str(report.longrepr)).splitlines()
    return lines[0].replace("\t", " ") if lines else ""


def pytest_sessionfinish(exitstatus):
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    with open(os.environ["OUTCOMES"], "w", encoding="utf-8") as file:
        for nodeid, (outcome, why) in outcomes.items():
            print(outcome, *place(nodeid), why, sep="\t", file=file)
