"""What the flags of the sample do, and what becomes of bad files.

That it learns and that layouts change no bit of it with the default flags is
tested in tests/cells/mnist_pipeline_test.cc.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from tests.checks import xml_main

BINARY = os.path.abspath(os.path.join("samples", "mnist_pipeline"))
DIGITS = os.path.abspath(os.path.join("third_party", "mnist_digits"))
FLAGS = [
    "stages", "micro_batches", "batch_size", "schedule", "epochs", "steps",
    "seed", "lr", "optimizer", "loss_reduction", "losses_out", "weights_out",
    "dump_dir", "data_dir", "transport", "deadline",
    "print_activations"
]
PARAMETERS = {
    "layer1.param": [784, 512],
    "layer2.weight": [512, 512],
    "layer2.bias": [512],
    "layer3.weight": [10, 512],
    "layer3.bias": [10],
}
LOSS_LINE = re.compile(r"epoch: (\d+) step: (\d+), loss is (\d+\.\d{6})")


def run(*flags, **options):
    return subprocess.run([BINARY, *flags], capture_output=True, text=True,
                          timeout=100, check=False, **options)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def loss_lines(output):
    """Returns [(epoch, step, loss)]."""
    return [(int(match[1]), int(match[2]), float(match[3]))
            for match in map(LOSS_LINE.fullmatch, output.splitlines()) if match]


class InFolder(unittest.TestCase):
    """A folder of its own for each test."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Training(InFolder):

    def train(self, *flags, steps=30):
        """Returns the bytes of the file of losses and of that of weights."""
        done = run(f"--steps={steps}", "--losses_out=" + self.path("losses"),
                   "--weights_out=" + self.path("weights"), *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read(self.path("losses")), read(self.path("weights"))

    def losses(self, *flags, steps=30):
        return [float(line) for line in self.train(*flags, steps=steps)[0].split()]

    def test_same_bits_for_each_number_of_micro_batches(self):
        for micro_batches in (1, 2, 8):
            flag = f"--micro_batches={micro_batches}"
            losses, weights = self.train("--stages=1", flag)
            self.assertEqual(losses.count(b"\n"), 30)
            for layout in (["--stages=2"], ["--stages=3"],
                           ["--stages=3", "--schedule=gpipe"]):
                with self.subTest(micro_batches=micro_batches, layout=layout):
                    again = self.train(flag, *layout)
                    self.assertEqual(again[0], losses)
                    self.assertTrue(again[1] == weights, "weights differ")

    def test_what_changes_the_losses(self):
        losses = self.train()
        for flag in ("--seed=2", "--lr=0.02", "--optimizer=adam",
                     "--batch_size=64", "--micro_batches=8",
                     "--loss_reduction=mean"):
            with self.subTest(flag=flag):
                self.assertNotEqual(self.train(flag)[0], losses[0])
                self.assertFalse(self.train(flag)[1] == losses[1])

    def test_sum_and_mean_of_the_micro_batches(self):
        # The same digits and weights in the first step: a mean over 32.
        (mean,) = self.losses("--loss_reduction=mean", steps=1)
        for micro_batches in (1, 2, 4, 8, 16, 32):
            with self.subTest(micro_batches=micro_batches):
                (total,) = self.losses(f"--micro_batches={micro_batches}",
                                       steps=1)
                self.assertAlmostEqual(total / micro_batches / mean, 1,
                                       delta=1e-6)

    def test_losses_have_nine_digits(self):
        for line in self.train()[0].decode().splitlines():
            self.assertEqual(line, f"{float(line):.9g}")
            # A float, and not what a shorter form makes of it.
            (value,) = struct.unpack("f", struct.pack("f", float(line)))
            self.assertEqual(line, f"{value:.9g}")

    def test_weights_of_all_stages_and_nothing_else(self):
        content = self.train("--stages=3", steps=1)[1]
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8:8 + length])
        self.assertEqual(header.pop("__metadata__"), {"steps": "1"})
        self.assertEqual({name: entry["shape"]
                          for name, entry in header.items()}, PARAMETERS)

    def test_lines_begin_anew_with_each_epoch(self):
        output = run("--batch_size=1000", "--epochs=3").stdout
        self.assertEqual([line[:2] for line in loss_lines(output)],
                         [(0, 0), (1, 0), (2, 0)])
        self.assertNotIn("\r", output)

    def test_progress_bar_on_a_terminal(self):
        try:
            terminal, stdout = os.openpty()
        except OSError as error:  # a bare chroot has no devpts
            self.skipTest(f"no pseudo-terminal can be opened here: {error}")
        with subprocess.Popen([BINARY, "--steps=3"], stdout=stdout) as program:
            os.close(stdout)
            shown = b""
            try:
                while part := os.read(terminal, 4096):
                    shown += part
            except OSError:  # what Linux says at the end
                pass
        os.close(terminal)
        self.assertEqual(program.returncode, 0)
        self.assertIn(b"3/125", shown)
        self.assertRegex(shown, rb"epoch: 0 step: 0, loss is \d+\.\d{6}\r\n")

    def test_relative_paths_begin_where_the_user_is(self):
        environment = dict(os.environ, BUILD_WORKING_DIRECTORY=self.folder)
        done = run("--steps=1", "--losses_out=losses", "--weights_out=weights",
                   "--dump_dir=dump", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read(self.path("losses")).count(b"\n"), 1)
        self.assertGreater(len(read(self.path("weights"))), 2**20)
        self.assertTrue(os.listdir(self.path("dump")))

    def test_data_of_ones_own(self):
        shutil.copytree(DIGITS, self.path("data"))
        self.assertEqual(self.losses("--data_dir=" + self.path("data")),
                         self.losses())


class Help(unittest.TestCase):

    def test_lists_all_flags(self):
        done = run("--help")
        self.assertIn("bazel run -c opt //samples:mnist_pipeline", done.stdout)
        self.assertEqual(re.findall(r"^ +--(\w+)", done.stdout, re.MULTILINE),
                         sorted(FLAGS))
        self.assertEqual(done.stderr, "")


class Refusals(InFolder):
    """What cannot be is refused before the first step, with a reason."""

    def check(self, flags, *texts):
        done = run("--weights_out=" + self.path("weights"), *flags)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertEqual(loss_lines(done.stdout), [])
        self.assertFalse(os.path.exists(self.path("weights")))
        return done.stderr

    def test_flags(self):
        folder = self.path("nowhere")
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for flag, *texts in (
            ("--stages=two", "stages", "two"),
            ("--micro_batches=3", "batch 32", "3 micro-batches",
             "multiple of 3", "--micro_batches=2"),
            ("--batch_size=0", "--batch_size=0", "at least 1"),
            ("--lr=inf", "lr is inf", "at least 0"),
            ("--lr=-0.1", "lr is -0.1", "at least 0"),
            ("--schedule=foo", "foo", "gpipe", "1f1b"),
            ("--losses_out=" + folder + "/losses", "--losses_out", folder),
            ("--losses_out=" + self.folder, "--losses_out", self.folder),
            ("--weights_out=" + folder + "/weights", "--weights_out", folder),
            ("--weights_out=" + self.folder, "--weights_out", self.folder),
            ("--weights_out=" + self.folder + "/", "--weights_out",
             self.folder),
            ("--weights_out=" + pipe, "--weights_out", pipe,
             "no regular file"),
            ("--losses_out=" + self.path("weights"), "one file", "give two"),
            ("--losses_out=" + self.path("./weights"), "one file"),
            ("--dump_dir=/proc/dump", "/proc/dump"),
            ("--data_dir=" + folder, folder + "/train/train-images-idx3-ubyte",
             "missing"),
        ):
            with self.subTest(flag=flag):
                self.check([flag], *texts)

    def copy_digits(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(DIGITS, folder, dirs_exist_ok=True)
        for parent, _, files in os.walk(folder):
            for name in files:
                os.chmod(os.path.join(parent, name), 0o644)
        return folder

    def test_damaged_files(self):
        images = os.path.join("train", "train-images-idx3-ubyte")
        labels = os.path.join("test", "t10k-labels-idx1-ubyte")
        for name, change, *texts in (
            (images, lambda content: content[:-1], "[4000, 28, 28]", "3135999"),
            (images, lambda content: content + b"\0", "[4000, 28, 28]",
             "3136001"),
            (images, lambda content: b"", "0 bytes"),
            (images, lambda content: content[:15], "15 bytes"),
            (images, lambda content: b"\x1f\x8b\x08\0" + content[4:],
             "31 139 8 0", "0 0 8 3"),
            (labels, lambda content: content[:-1], "[1000]", "999"),
            (labels, lambda content: content[:4] + struct.pack(">I", 999) +
             content[8:-1], "1000", "999"),
        ):
            with self.subTest(name=name, texts=texts):
                folder = self.copy_digits()
                path = os.path.join(folder, name)
                content = read(path)
                with open(path, "wb") as file:
                    file.write(change(content))
                self.check(["--data_dir=" + folder], path, *texts)

    def test_one_wrong_label(self):
        folder = self.copy_digits()
        labels = os.path.join(folder, "train", "train-labels-idx1-ubyte")
        content = bytearray(read(labels))
        content[8 + 1234] = 200
        with open(labels, "wb") as file:
            file.write(content)
        for stages in (1, 3):
            with self.subTest(stages=stages):
                done = run(f"--stages={stages}", "--data_dir=" + folder,
                           "--losses_out=" + self.path("losses"),
                           "--weights_out=" + self.path("weights"))
                self.assertEqual(done.returncode, 1, done.stderr)
                for text in ("200", "[0, 10)"):
                    self.assertIn(text, done.stderr)
                self.assertFalse(os.path.exists(self.path("weights")))
                # The steps before are those that any other run has.
                losses = read(self.path("losses"))
                steps = losses.count(b"\n")
                self.assertLess(steps, 125)
                run(f"--steps={steps}", "--losses_out=" + self.path("losses"))
                self.assertEqual(losses, read(self.path("losses")))


if __name__ == "__main__":
    xml_main.main()
