"""unittest.main() that also writes the report that test runners read.

Bazel names the file in XML_OUTPUT_FILE; GoogleTest writes it by itself. With
it each case counts on its own, and a skipped case is seen as skipped.
"""

import os
import unittest
import xml.etree.ElementTree as ElementTree


class _Result(unittest.TextTestResult):
    """Also keeps (test, outcome, message) of all tests, subtests apart."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.cases.append((test, None, ""))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.cases.append((test, "skipped", reason))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.cases.append((test, "failure", self.failures[-1][1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.cases.append((test, "error", self.errors[-1][1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.cases.append((subtest, "failure", str(err[1])))


def _write(result, path):
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="unittest",
                                   tests=str(len(result.cases)))
    for test, outcome, message in result.cases:
        case = ElementTree.SubElement(suite, "testcase", name=str(test))
        if outcome:
            ElementTree.SubElement(case, outcome, message=message)
    ElementTree.ElementTree(suites).write(path, encoding="utf-8",
                                          xml_declaration=True)


def main():
    program = unittest.main(
        exit=False,
        testRunner=unittest.TextTestRunner(resultclass=_Result, verbosity=2))
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        _write(program.result, path)
    raise SystemExit(0 if program.result.wasSuccessful() else 1)
