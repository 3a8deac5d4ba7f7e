"""The samples for MindSpore over processes: against stock MindSpore, and to the bit against each other."""

import os
import re

from tests.checks import xml_main
from tests.mindspore import runs

DIGITS = os.path.join(runs.RUNFILES, "third_party", "mnist_digits", "train")
SCRIPT = "distributed_pipeline_parallel.py"
STEPS = 30


class SamplesTest(runs.RunsTest):

    def train(self, name, *arguments):
        output = self.run_sample("train", "--steps", str(STEPS), "--losses_out", name, *arguments)
        losses = self.losses(name)
        self.assertEqual(len(losses), STEPS)
        return losses, output

    def test_training_gives_the_losses_of_stock_mindspore_and_the_same_bits_on_any_ranks(self):
        losses, output = self.train("two", "-n", "2")
        with self.subTest("lines"):
            lines = re.findall(r"^epoch: .*", output, re.MULTILINE)
            self.assertEqual([line.rsplit(" ", 1)[0] for line in lines],
                             [f"epoch: 0, step: {step}, loss is" for step in (0, 10, 20)])
            self.assertAlmostEqual(float(lines[1].rsplit(" ", 1)[1]), losses[10], places=5)
            self.assertEqual(output.count("out is:\nTensor(shape=[8, 512]"), 4 * STEPS)
            self.assertNotIn("out is:", self.read("log_output/worker_1.log"))
        with self.subTest("stock"):
            self.run_stock(SCRIPT, "--no_print", "--data_dir", DIGITS, "--steps", str(STEPS), "--losses_out", "stock")
            for loss, expected in zip(losses, self.losses("stock"), strict=True):
                self.assertLess(abs(loss - expected), 1e-5 * expected)
        with self.subTest("interleaved"):
            self.assertEqual(self.train("interleaved", "-n", "2", "--no_print", "--interleave")[0], losses)
        with self.subTest("one process"):
            self.assertEqual(self.train("one", "-n", "1", "--no_print")[0], losses)

    def test_prediction_is_that_of_stock_mindspore_on_every_rank(self):
        expected = numbers_of(self.run_stock("distributed_pipeline_parallel_inference.py"))
        self.assertEqual(len(expected), 8 * 32)
        self.run_sample("infer", "-n", "4")
        first = numbers_of(self.read("pipeline_inference_logs/worker_0.log"))
        for value, number in zip(first, expected, strict=True):
            self.assertLess(abs(value - number), 1e-5 * abs(number))
        for rank in (1, 2, 3):
            self.assertEqual(numbers_of(self.read(f"pipeline_inference_logs/worker_{rank}.log")), first)


def numbers_of(text):
    """Those of a printed matrix."""
    return [float(number) for number in re.findall(r"-?\d+\.\d*(?:e[+-]\d+)?", text[text.index("[["):text.index("]]")])]


if __name__ == "__main__":
    xml_main.main()
