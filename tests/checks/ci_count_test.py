"""The closing line of .ci/run says what the reports say."""

import importlib.util
import os
import tempfile
import unittest

from tests.checks import xml_main

_SPEC = importlib.util.spec_from_file_location(
    "ci_count", os.path.join(".ci", "count.py"))
ci_count = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(ci_count)


class Count(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def ran(self, label, status, cases, attempt=1):
        """An event: the test `label` ran and reported these <testcase>s."""
        path = os.path.join(self.directory, f"{label[2:]} {attempt}.xml")
        with open(path, "w", encoding="utf-8") as report:
            report.write(f"<testsuites><testsuite>{cases}"
                         "</testsuite></testsuites>")
        return {
            "id": {"testResult": {"label": label, "run": 1, "shard": 1,
                                  "attempt": attempt}},
            "testResult": {"status": status, "testActionOutput": [
                {"name": "test.log", "uri": "file:///nowhere"},
                {"name": "test.xml", "uri": "file://" + path.replace(
                    " ", "%20")}]},
        }

    def closing(self, events, status=0):
        total, _ = ci_count.count(events, status)
        return total["passed"], total["failed"], total["skipped"]

    def test_cases_of_googletest(self):
        cases = ('<testcase name="a" status="run" result="completed"/>'
                 '<testcase name="b" status="run" result="completed"/>'
                 '<testcase name="c" status="run" result="skipped">'
                 '<skipped/></testcase>'
                 '<testcase name="d" status="notrun" result="suppressed"/>'
                 '<testcase name="e" status="run"><failure/></testcase>')
        self.assertEqual(self.closing([self.ran("//x", "FAILED", cases)], 3),
                         (2, 1, 1))

    def test_a_crash_that_no_case_is_blamed_for_counts(self):
        events = [self.ran("//x", "FAILED", '<testcase name="a"/>'),
                  self.ran("//y", "TIMEOUT", "")]
        self.assertEqual(self.closing(events, 3), (1, 2, 0))

    def test_a_missing_report_of_a_failed_test_counts(self):
        event = self.ran("//x", "FAILED", "")
        event["testResult"]["testActionOutput"] = []
        self.assertEqual(self.closing([event], 3), (0, 1, 0))

    def test_only_the_last_attempt_counts(self):
        events = [
            self.ran("//x", "FAILED", "<testcase><failure/></testcase>", 1),
            self.ran("//x", "PASSED", "<testcase/>", 2)]
        self.assertEqual(self.closing(events), (1, 0, 0))

    def test_targets_that_do_not_build_count(self):
        def completed(label, **kind):
            return {"id": {"targetCompleted": {"label": label}}, **kind}
        events = [
            self.ran("//x", "PASSED", "<testcase/>"),
            completed("//x", completed={"success": True}),
            completed("//y", completed={"failureDetail": {}}),
            completed("//z", aborted={"reason": "ANALYSIS_FAILURE"})]
        self.assertEqual(self.closing(events, 1), (1, 2, 0))

    def test_a_failed_test_is_not_also_an_unbuilt_target(self):
        events = [
            self.ran("//x", "FAILED", "<testcase><error/></testcase>"),
            {"id": {"targetCompleted": {"label": "//x"}}, "completed": {}}]
        self.assertEqual(self.closing(events, 3), (0, 1, 0))

    def test_a_failure_of_bazel_itself_counts(self):
        self.assertEqual(self.closing([], 1), (0, 1, 0))


if __name__ == "__main__":
    xml_main.main()
