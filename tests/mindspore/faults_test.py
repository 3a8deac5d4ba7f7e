"""What goes wrong in a script under pipeloom-run: each rank ends with an error that names it, and none hangs."""

import os
import re
import signal
import threading
import time

from tests.checks import xml_main
from tests.mindspore import runs

SCRIPT = os.path.join(runs.RUNFILES, "tests", "mindspore", "faulty_script.py")

# Kind: what the log of each of the two ranks has.
BOTH = {
    "unknown name": r"KeyError: .*'_backbone.3': 1\} is not found.*the nearest names are '_backbone\.",
    "missed cell": r"ValueError: the cell '_backbone.2' has the parameter 2.\w+ but no stage",
    "stages": "ValueError: 3 stages do not divide the world of 2 ranks",
    "type": "TypeError: For 'MatMul'.*Float64.*Float32",
    "batch": "ValueError: batch 30 does not divide into 4 micro-batches; give a multiple of 4 or micro_size=3",
    "exception": "label 12 is out of range",
}


class FaultsTest(runs.RunsTest):

    def run_faulty(self, kind):
        return self.run_command(*runs.launch(2, SCRIPT, kind), PYTHONPATH=runs.package_path())

    def logs(self):
        return [self.read(f"log_output/worker_{rank}.log") for rank in (0, 1)]

    def test_nothing_wrong(self):
        status, output = self.run_faulty("nothing")
        self.assertEqual(status, 0, output)
        self.assertEqual([log.count("loss ") for log in self.logs()], [5, 5])

    def test_each_rank_names_the_fault(self):
        for kind, pattern in BOTH.items():
            with self.subTest(kind):
                status, output = self.run_faulty(kind)
                self.assertEqual(status, 1, output)
                for log in self.logs():
                    self.assertRegex(log, re.compile(pattern, re.DOTALL))
                    self.assertNotIn("done", log)

    def test_a_rank_with_fewer_batches(self):
        status, output = self.run_faulty("unequal batches")
        self.assertEqual(status, 1, output)
        self.assertIn("the ranks do not do the same", self.logs()[0])
        self.assertIn("rank 1 has ended", self.logs()[0])

    def test_a_rank_that_is_killed(self):
        killer = threading.Thread(target=self.kill_rank_1)
        killer.start()
        status, output = self.run_faulty("killed")
        killer.join()
        self.assertEqual(status, 128 + signal.SIGKILL, output)
        self.assertRegex(output, r"rank 1 \(host \S+, pid \d+\) ended with signal 9")

    def kill_rank_1(self):
        deadline = time.monotonic() + runs.LIMIT
        while time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                if "ready" in self.read("log_output/worker_1.log"):
                    pid = re.search(r"rank 1: host \S+, pid (\d+)", self.read("log_output/scheduler.log"))[1]
                    os.kill(int(pid), signal.SIGKILL)
                    return
            except FileNotFoundError:
                pass


if __name__ == "__main__":
    xml_main.main()
