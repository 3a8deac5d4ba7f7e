"""Counts the test cases of one Bazel run; prints `N passed, N failed`.

Usage: count.py BUILD_EVENT_JSON_FILE EXIT_STATUS_OF_BAZEL

Each test target's test.xml counts case by case. A target whose test did not
pass although its report blames no case (a crash, a time-out, no report), and a
target that could not be built, count as one failed case.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections import Counter


def read_events(path):
    """Yields the events of a build event file; ends at a torn last line."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                return


def last_results(events):
    """Returns {(label, run, shard): testResult}, the last attempt of each."""
    results = {}
    for event in events:
        name = event.get("id", {}).get("testResult")
        if name and "testResult" in event:
            key = (name["label"], name.get("run", 1), name.get("shard", 1))
            attempt = name.get("attempt", 1)
            if key not in results or attempt >= results[key][0]:
                results[key] = (attempt, event["testResult"])
    return {key: result for key, (_, result) in results.items()}


def unbuilt(events):
    """Returns the labels of all targets that did not get built."""
    return {
        event["id"]["targetCompleted"]["label"]
        for event in events
        if "targetCompleted" in event.get("id", {}) and
        not event.get("completed", {}).get("success")
    }


def count_report(result):
    """Returns a Counter of the cases of one test.xml."""
    counts = Counter()
    for output in result.get("testActionOutput", []):
        if output.get("name") != "test.xml":
            continue
        path = urllib.parse.unquote(
            urllib.parse.urlparse(output.get("uri", "")).path)
        try:
            cases = ElementTree.parse(path).getroot().iter("testcase")
        except (OSError, ElementTree.ParseError):
            continue
        for case in cases:
            if case.find("failure") is not None or \
                    case.find("error") is not None:
                counts["failed"] += 1
            elif case.find("skipped") is not None or \
                    case.get("result") == "skipped":
                counts["skipped"] += 1
            elif case.get("status", "run") == "run":
                counts["passed"] += 1
            # What is left are disabled tests (status="notrun").
    return counts


def count(events, bazel_status):
    """Returns (Counter, [what did not pass]) of a whole run."""
    events = list(events)
    total = Counter()
    blamed = []
    for (label, run, shard), result in sorted(last_results(events).items()):
        counts = count_report(result)
        if result.get("status") != "PASSED" and not counts["failed"]:
            counts["failed"] += 1
        total += counts
        if counts["failed"]:
            blamed.append(f"{label} (run {run}, shard {shard}): "
                          f"{result.get('status')}")
    tested = {label for label, _, _ in last_results(events)}
    for label in sorted(unbuilt(events) - tested):
        total["failed"] += 1
        blamed.append(f"{label}: could not be built")
    if bazel_status != 0 and not total["failed"]:
        total["failed"] += 1
        blamed.append(f"bazel ended with {bazel_status}")
    return total, blamed


def main(arguments):
    total, blamed = count(read_events(arguments[0]), int(arguments[1]))
    for line in blamed:
        print("FAILED:", line)
    closing = f"{total['passed']} passed, {total['failed']} failed"
    if total["skipped"]:
        closing += f", {total['skipped']} skipped"
    print(closing)
    sys.exit(1 if total["failed"] or not total["passed"] else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
