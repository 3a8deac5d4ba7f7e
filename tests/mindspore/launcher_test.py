"""pipeloom-run with plain Python scripts: how ranks start, what is written where, and how they end."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from tests.checks import xml_main

LAUNCHER = os.path.abspath(os.path.join("plugin", "mindspore", "python", "pipeloom", "launcher.py"))

STUB = """
import os
def enable():
    print("enabled")
    if os.path.exists("enable_fails"):
        raise RuntimeError("this MindSpore is too old")
def end(failure):
    print("end:", repr(failure))
    if os.path.exists("end_fails"):
        raise RuntimeError("rank 1 is still in step 7")
"""

# A rank that runs until it is ended, with a child of its own.
WAITS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "300"])
print("child", child.pid)
print("waiting")
time.sleep(300)
"""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def is_running(pid):
    state = read(f"/proc/{pid}/stat").rsplit(")", 1)
    return len(state) == 2 and state[1].split()[0] not in "ZX"


class LauncherTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir="/tmp")  # short, for mpirun's sockets
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.write("stub/pipeloom/__init__.py", STUB)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))

    def start(self, *arguments, **variables):
        environment = dict(os.environ, HOME=self.folder, TMPDIR=self.folder, PYTHONPATH=self.path("stub"),
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        running = subprocess.Popen([sys.executable, LAUNCHER, *arguments], cwd=self.folder, text=True,
                                   env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, running)
        return running

    def end(self, running):
        if running.poll() is None:
            running.kill()
        running.wait()
        running.stdout.close()
        running.stderr.close()

    def finish(self, running, seconds=60):
        """Returns (exit status, what was shown on stdout, on stderr)."""
        try:
            out, err = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"no end after {seconds} seconds:\n{self.scheduler()}")
        return running.returncode, out, err

    def run_script(self, script, *arguments, ranks=2, **variables):
        self.write("script.py", script)
        return self.finish(self.start("-n", str(ranks), "script.py", *arguments, **variables))

    def start_waiting(self, script=WAITS):
        """Starts two ranks; returns the launcher and all processes of the ranks."""
        shutil.rmtree(self.path("log_output"), ignore_errors=True)
        self.write("script.py", script)
        running = self.start("-n", "2", "script.py")
        latest = time.monotonic() + 60
        while not all("waiting" in self.worker(rank) for rank in range(2)):
            self.assertLess(time.monotonic(), latest, self.scheduler())
            self.assertIsNone(running.poll(), self.scheduler())
            time.sleep(0.05)
        children = [int(re.search(r"child (\d+)", self.worker(rank))[1]) for rank in range(2)]
        return running, [self.pid(0), self.pid(1), *children]

    def worker(self, rank):
        return read(self.path("log_output", f"worker_{rank}.log"))

    def scheduler(self):
        return read(self.path("log_output", "scheduler.log"))

    def pid(self, rank):
        return int(re.search(rf"rank {rank}: host \S+, pid (\d+)", self.scheduler())[1])

    def assert_gone(self, pids, seconds=20):
        latest = time.monotonic() + seconds
        while any(map(is_running, pids)):
            self.assertLess(time.monotonic(), latest, f"{list(filter(is_running, pids))} are left of {pids}")
            time.sleep(0.05)

    def assert_scheduled(self, *lines):
        for line in lines:
            self.assertRegex(self.scheduler(), r"(?m)^[-\d]{10} [:.\d]{12} " + line + "$")

    def test_each_rank_runs_the_script_and_has_a_log(self):
        self.write("log_output/worker_7.log", "of an earlier run\n")
        status, out, err = self.run_script("""
            import os, sys
            print("rank", os.environ["OMPI_COMM_WORLD_RANK"])
            print("to stderr", file=sys.stderr)
        """, ranks=3)
        self.assertEqual((status, err), (0, ""), self.scheduler())
        self.assertEqual(out, "enabled\nrank 0\nto stderr\nend: None\n")
        for rank in range(3):
            self.assertEqual(self.worker(rank), f"enabled\nrank {rank}\nto stderr\nend: None\n")
            self.assert_scheduled(rf"rank {rank}: host \S+, pid \d+", f"rank {rank}: exit status 0")
        self.assert_scheduled("command: pipeloom-run -n 3 script.py", "mpirun: mpirun -n 3 .*", "exit status 0")
        self.assertEqual(sorted(os.listdir(self.path("log_output"))),
                         ["scheduler.log", "worker_0.log", "worker_1.log", "worker_2.log"])

    def test_the_script_is_the_main_module_with_its_own_arguments(self):
        self.write("of one/neighbour.py", "name = 'neighbour'")
        self.write("of one/a script.py", """
            import inspect, sys
            import neighbour
            class Net:
                pass
            print(__name__, __file__, sys.path[0], neighbour.name, sys.argv, inspect.getsource(Net))
            assert sys.modules["__main__"].Net is Net
        """)
        arguments = ["two words", ":", "-n", "5", "--log_dir", "", "a'b\"c", "--", "$HOME"]
        status, out, err = self.finish(self.start("-n", "1", "--log_dir", "logs/of a run", "of one/a script.py",
                                                  *arguments))
        self.assertEqual((status, err), (0, ""), out)
        path = self.path("of one", "a script.py")
        self.assertIn(f"__main__ {path} {self.path('of one')} neighbour {[path, *arguments]} class Net:", out)
        self.assertTrue(os.path.exists(self.path("logs", "of a run", "scheduler.log")))

    def test_exit_status_is_the_scripts(self):
        for code, expected, text in (("3", 3, "SystemExit: 3"), ("'no digits here'", 1, "no digits here")):
            with self.subTest(code=code):
                status, _, err = self.run_script(f"import sys\nsys.exit({code})\n")
                self.assertEqual(status, expected, err)
                self.assertRegex(err, rf"rank \d \(.*, pid \d+\) ended with exit status {expected}: {text}; see .*log")
                self.assertIn(text, self.worker(0) + self.worker(1))
                self.assert_scheduled(rf"rank \d: exit status {expected}", f"exit status {expected}")
        for code in ("0", "None", ""):
            self.assertEqual(self.run_script(f"import sys\nsys.exit({code})\n")[0], 0)
            self.assertIn("end: None", self.worker(1))

    def test_exception_in_one_rank_ends_all_and_is_shown(self):
        status, _, err = self.run_script("""
            import os, time
            def loss(rank):
                if rank == 1:
                    raise ValueError("label 12 is out of range")
                time.sleep(300)
            loss(int(os.environ["OMPI_COMM_WORLD_RANK"]))
        """)
        self.assertEqual(status, 1)
        expected = ('Traceback (most recent call last):\n'
                    f'  File "{self.path("script.py")}", line 7, in <module>\n'
                    '    loss(int(os.environ["OMPI_COMM_WORLD_RANK"]))\n'
                    f'  File "{self.path("script.py")}", line 5, in loss\n'
                    '    raise ValueError("label 12 is out of range")\n'
                    'ValueError: label 12 is out of range\n')
        self.assertRegex(err, re.escape(expected) + r"pipeloom-run: rank 1 \(host \S+, pid \d+\) ended with "
                         r"exit status 1: ValueError: label 12 is out of range; see \S+/log_output/worker_1.log\n$")
        self.assertIn(expected, self.worker(1))
        self.assertIn(f"end: {expected!r}", self.worker(1))
        self.assert_scheduled("rank 1: failed: ValueError: label 12 is out of range", "rank 1: exit status 1",
                              r"rank 0: signal 15 \(Terminated\), sent after pipeloom-run's request", "exit status 1")
        self.assertRegex(self.worker(0), r'File ".*script.py", line 6 in loss')  # where it was
        self.assert_gone([self.pid(0), self.pid(1)])

    def test_failure_with_an_end_that_takes_too_long(self):
        status, _, err = self.run_script("""
            import atexit, time
            atexit.register(time.sleep, 300)
            raise ValueError("label 12 is out of range")
        """)
        self.assertEqual(status, 1)
        self.assertRegex(err, r"ended with signal 9 \(Killed\), sent 5 seconds after its failure: ValueError: label 12")

    def test_script_that_is_no_python(self):
        status, _, err = self.run_script("for (;;) {}\n")
        self.assertEqual(status, 1)
        self.assertIn(f'File "{self.path("script.py")}", line 1\n', self.worker(0) + self.worker(1))
        self.assertIn("SyntaxError: invalid syntax", self.worker(0) + self.worker(1))
        self.assertNotIn("runpy", self.worker(0) + self.worker(1) + err)

    def test_long_text_of_an_exception(self):
        status, _, err = self.run_script("raise ValueError('\\n'.join('x' * 300 for _ in range(500)) + ' the end')\n")
        self.assertEqual(status, 1)
        self.assertRegex(self.scheduler(), r"rank \d: failed: ValueError: x{300}\n")
        self.assertRegex(self.scheduler(), r"rank \d: \| x{300} the end\n")
        self.assertEqual(self.worker(0).count("x" * 300), 2 * 500)
        self.assertRegex(err, r"rank \d .* ended with exit status 1")

    def test_kill_of_one_rank_ends_all(self):
        for victim in range(2):
            with self.subTest(victim=victim):
                running, pids = self.start_waiting()
                os.kill(self.pid(victim), signal.SIGKILL)
                status, _, err = self.finish(running)
                self.assertEqual(status, 128 + signal.SIGKILL, err)
                self.assertRegex(err, rf"rank {victim} \(.*\) ended with signal 9 \(Killed\); see .*_{victim}.log")
                self.assert_scheduled(rf"rank {victim}: signal 9 \(Killed\)",
                                      rf"rank {1 - victim}: signal 15 \(Terminated\), sent after .*", "exit status 137")
                self.assert_gone(pids)

    def test_crash_leaves_where_it_was(self):
        status, _, err = self.run_script("import ctypes\nctypes.string_at(0)\n")
        self.assertEqual(status, 128 + signal.SIGSEGV, err)
        self.assertRegex(self.worker(0) + self.worker(1), r'Segmentation fault[^$]*script.py", line 2')

    def test_rank_that_does_not_heed_sigterm(self):
        running, pids = self.start_waiting("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS)
        os.kill(self.pid(1), signal.SIGKILL)
        self.assertEqual(self.finish(running)[0], 128 + signal.SIGKILL)
        self.assert_scheduled(r"rank 1: signal 9 \(Killed\)",
                              r"rank 0: signal 9 \(Killed\), sent 5 seconds after pipeloom-run's request")
        self.assert_gone(pids)

    def test_ctrl_c_ends_all(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            running, pids = self.start_waiting()
            running.send_signal(number)
            status, _, err = self.finish(running)
            self.assertEqual(status, 128 + number)
            self.assertIn(f"pipeloom-run: ended by {number.name}\n", err)
            for rank in range(2):
                self.assert_scheduled(rf"rank {rank}: signal 15 \(Terminated\), sent after pipeloom-run's request")
            self.assert_gone(pids)

    def test_no_rank_outlives_the_launcher(self):
        running, pids = self.start_waiting()
        running.kill()
        self.assert_gone(pids)

    def test_failure_to_enable_and_to_end(self):
        for file, text in (("enable_fails", "RuntimeError: this MindSpore is too old"),
                           ("end_fails", "RuntimeError: rank 1 is still in step 7")):
            self.write(file, "")
            status, _, _ = self.run_script("print('the script')\n")
            os.remove(self.path(file))
            self.assertEqual(status, 1, self.scheduler())
            self.assertIn(text, self.worker(0) + self.worker(1))
            self.assertEqual("the script" in self.worker(0) + self.worker(1), file == "end_fails")

    def test_hosts_of_a_file(self):
        self.write("hosts", "localhost slots=2\n")
        self.write("script.py", "import os\nprint('data in', os.environ['DATA_PATH'])\n")
        status, out, err = self.finish(self.start("-n", "2", "--hostfile", "hosts", "script.py", DATA_PATH="/a/b c"))
        self.assertEqual((status, err), (0, ""), self.scheduler())
        self.assertIn("data in /a/b c\n", out)
        self.assert_scheduled("mpirun: .* --hostfile hosts .*-x DATA_PATH .*")

    def test_what_mpirun_refuses(self):
        self.write("hosts", "localhost slots=x y\n")
        self.write("script.py", "")
        status, _, err = self.finish(self.start("-n", "2", "--hostfile", "hosts", "script.py"))
        self.assertNotEqual(status, 0)
        self.assertIn("hosts", err)
        self.assert_scheduled("rank 0: did not start", "rank 1: did not start", f"exit status {status}")

    def test_refused_command_lines(self):
        self.write("script.py", "")
        self.write("a_file", "")
        for arguments, text in (
                (["script.py"], "the following arguments are required: -n$"),
                (["-n", "2"], "the following arguments are required: script$"),
                (["-n", "0", "script.py"], "-n 0: there must be at least one rank"),
                (["-n", "two", "script.py"], "invalid int value: 'two'"),
                (["-n", "2", "missing.py", "x"], "there is no script missing.py"),
                (["-n", "2", "--hostfile", "missing", "script.py"], "there is no file missing with hosts"),
                (["-n", "2", "--log_dir", "a_file/x", "script.py"], "--log_dir a_file/x cannot be made: Not a dir"),
                (["-n", "2", "--log", "logs", "script.py"], "unrecognized arguments|there is no script logs")):
            with self.subTest(arguments=arguments):
                status, out, err = self.finish(self.start(*arguments))
                self.assertEqual((status, out), (2, ""))
                self.assertRegex(err, "(?m)pipeloom-run: error: .*(" + text + ")")
        status, _, err = self.finish(self.start("-n", "2", "script.py", PATH="/nowhere"))
        self.assertEqual(status, 2)
        self.assertIn("mpirun is not there; install Open MPI (Debian: openmpi-bin)", err)


if __name__ == "__main__":
    xml_main.main()
