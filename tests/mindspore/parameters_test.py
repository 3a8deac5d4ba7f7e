"""Parameters without values at first: those of one device, each on the ranks that use it only; and gathered again."""

import ast
import os
import re

from tests.checks import xml_main
from tests.mindspore import runs

SCRIPT = os.path.join(runs.RUNFILES, "tests", "mindspore", "parameters_script.py")
WIDE = 2048  # 512 MB of parameters and moments


class ParametersTest(runs.RunsTest):

    def run_ranks(self, ranks, kind, width):
        """What each rank printed: {name: value}."""
        status, output = self.run_command(*runs.launch(ranks, SCRIPT, kind, str(width)),
                                          PYTHONPATH=runs.package_path())
        self.assertEqual(status, 0, output[-3000:])
        logs = [self.read(f"log_output/worker_{rank}.log") for rank in range(ranks)]
        return [{name: ast.literal_eval(value) for name, value in re.findall(r"^([a-z ]+): (\S.*)$", log, re.MULTILINE)}
                for log in logs]

    def test_values_are_those_of_one_device_wherever_they_are(self):
        [alone] = self.run_ranks(1, "function", 16)
        self.assertEqual(len(set(alone["sums"])), 16)
        for kind in ("function", "cell"):
            for printed in self.run_ranks(4, kind, 16):
                with self.subTest(kind):
                    self.assertEqual(printed["sums"], alone["sums"])
                    self.assertEqual(printed["loss"], alone["loss"])

    def test_a_rank_holds_its_own_parameters_only(self):
        for kind in ("function", "cell"):
            for rank, printed in enumerate(self.run_ranks(4, kind, WIDE)):
                with self.subTest(kind, rank=rank):
                    print(kind, rank, printed)
                    self.assertGreater(printed["bytes of all"], 400e6)
                    self.assertLess(printed["bytes held"], 0.3 * printed["bytes of all"])
                    # Gradients and activations are among it too.
                    self.assertLess(printed["growth"], 0.7 * printed["bytes of all"])


if __name__ == "__main__":
    xml_main.main()
