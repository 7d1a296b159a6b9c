#!/usr/bin/env python3
"""Adds up ctest's JUnit reports: prints the figures that tests have printed, names those that failed or were skipped, and
ends with a line of counts.

    scripts/test_summary.py FOLDER

A figure is a line of a test's output that begins with `figure: `; ctest keeps the first 1,024 bytes of a test that passed.
Exits with 1 if a test failed or none ran.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

FIGURE = "figure: "


def reason(case):
    """The last line that a skipped test printed."""
    lines = (case.findtext("system-out") or "").strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


def figures(case):
    """What the test has measured, in words."""
    lines = (case.findtext("system-out") or "").splitlines()
    return [line.removeprefix(FIGURE).strip() for line in lines if line.startswith(FIGURE)]


def main():
    cases = [case for report in sorted(pathlib.Path(sys.argv[1]).glob("*.xml"))
             for case in xml.parse(report).getroot().iter("testcase")]
    failed = [case for case in cases if case.get("status") == "fail"]
    passed = [case for case in cases if case.get("status") == "run"]
    skipped = [case for case in cases if case.get("status") not in ("fail", "run")]
    for case in cases:
        for figure in figures(case):
            print(f"figure   {case.get('name')}: {figure}")
    for case in skipped:
        print(f"skipped  {case.get('name')}: {reason(case)}")
    for case in failed:
        print(f"FAILED   {case.get('name')}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
