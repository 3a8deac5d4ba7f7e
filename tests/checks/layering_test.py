"""Reads the #include lines of the tree and holds them to the layering."""

import os
import unittest

from tests.checks import layering
from tests.checks import source_tree
from tests.checks import xml_main


class LayeringRules(unittest.TestCase):
    """The rules themselves, on lines made up for the purpose."""

    ALLOWED = (
        ("kernels/cpu/matmul.cc", '"kernels/base/shape.h"'),
        ("kernels/cpu/matmul.cc", '"kernels/registry/kernel.h"'),
        ("kernels/cpu/matmul.cc", '"oneapi/dnnl/dnnl.hpp"'),
        ("kernels/gpu/matmul.cu", "<cuda_runtime.h>"),
        ("kernels/transport/nccl.cc", "<nccl.h>"),
        ("kernels/transport/mpi.cc", "<mpi.h>"),
        ("passes/ir/graph.h", '"kernels/base/shape.h"'),
        ("passes/fuse.cc", '"passes/ir/graph.h"'),
        ("passes/fuse.cc", "<vector>"),
        ("passes/fuse.cc", '"absl/status/status.h"'),
        ("plugin/runtime/executor.cc", '"kernels/cpu/kernels.h"'),
        ("plugin/runtime/executor.cc", '"passes/ir/graph.h"'),
        ("plugin/cells/cell.cc", '"plugin/runtime/session.h"'),
        ("plugin/mindspore/adapter.cc", '"ir/primitive.h"'),
        ("samples/mnist.cc", '"plugin/cells/cell.h"'),
        ("tests/testlib/golden.cc", '"gtest/gtest.h"'),
        ("tests/equivalence_test.cc", '"samples/net.h"'),
    )

    REFUSED = (
        ("kernels/base/shape.h", '"kernels/registry/kernel.h"', "base"),
        ("kernels/base/shape.h", '"passes/ir/graph.h"', "left"),
        ("kernels/registry/kernel.h", '"kernels/cpu/matmul.h"', "registry"),
        ("kernels/cpu/matmul.cc", '"kernels/gpu/matmul.h"', "each other"),
        ("kernels/cpu/matmul.cc", '"kernels/transport/channel.h"',
         "each other"),
        ("kernels/transport/shm.cc", '"kernels/cpu/matmul.h"', "each other"),
        ("kernels/gpu/matmul.cu", '"kernels/transport/nccl.h"', "each other"),
        ("kernels/cpu/matmul.cc", "<cuda_runtime.h>", "CUDA"),
        ("kernels/transport/mpi.cc", "<nccl.h>", "CUDA"),
        ("plugin/runtime/executor.cc", "<cublasLt.h>", "CUDA"),
        ("plugin/runtime/executor.cc", "<mpi.h>", "MPI"),
        ("passes/fuse.cc", '"kernels/registry/kernel.h"', "kernels/base"),
        ("passes/fuse.cc", '"kernels/cpu/matmul.h"', "kernels/base"),
        ("passes/fuse.cc", '"oneapi/dnnl/dnnl.hpp"', "oneDNN"),
        ("passes/fuse.cc", '"plugin/runtime/session.h"', "left"),
        ("passes/fuse.cc", '"gtest/gtest.h"', "GoogleTest"),
        ("passes/fuse.cc", "<passes/ir/graph.h>", "quotes"),
        ("passes/fuse.cc", '"ir/graph.h"', "MindSpore"),
        ("passes/fuse.cc", '"fuse.h"', "workspace root"),
        ("passes/fuse.cc", '"../passes/fuse.h"', "workspace root"),
        ("plugin/runtime/executor.cc", '"plugin/cells/cell.h"', "no host"),
        ("plugin/runtime/executor.cc", '"plugin/engine/engine.h"', "no host"),
        ("plugin/runtime/executor.cc", '"plugin/c_api/pipeloom.h"', "no host"),
        ("plugin/cells/cell.cc", '"plugin/mindspore/adapter.h"', "adapter"),
        ("plugin/cells/cell.cc", '"mindspore/core/include/x.h"', "MindSpore"),
        ("plugin/c_api/pipeloom.cc", '"custom_backend_api.h"', "MindSpore"),
        ("plugin/cells/cell.cc", '"samples/net.h"', "left"),
        ("samples/mnist.cc", '"tests/testlib/golden.h"', "left"),
    )

    def judge(self, includer, line, exists=lambda path: True):
        (_, bracket, path), = layering.includes("#include " + line + "\n")
        return layering.violation(includer, bracket, path, exists)

    def test_allowed(self):
        for includer, line in self.ALLOWED:
            with self.subTest(includer=includer, line=line):
                self.assertIsNone(self.judge(includer, line))

    def test_refused(self):
        for includer, line, reason in self.REFUSED:
            with self.subTest(includer=includer, line=line):
                self.assertIn(reason, self.judge(includer, line) or "")

    def test_missing_file(self):
        self.assertEqual(
            self.judge("passes/fuse.cc", '"passes/gone.h"',
                       exists=lambda path: False), "there is no such file")

    def test_lines_that_are_includes(self):
        text = '#include <a>\n  #  include "b/c.h"  // why\n// #include "d"\n'
        self.assertEqual(list(layering.includes(text)),
                         [(1, "<", "a"), (2, '"', "b/c.h")])


class Tree(unittest.TestCase):

    def test_every_include_line(self):
        files = source_tree.cpp_files()
        self.assertGreater(len(files), 0, "no C++ file found in " +
                           source_tree.root())

        def exists(path):
            return os.path.isfile(os.path.join(source_tree.root(), path))

        problems = []
        for path in files:
            with open(os.path.join(source_tree.root(), path),
                      encoding="utf-8") as source:
                text = source.read()
            for number, bracket, included in layering.includes(text):
                why = layering.violation(path, bracket, included, exists)
                if why:
                    problems.append(f"{path}:{number}: {included}: {why}")
        self.assertFalse(problems, "\n" + "\n".join(problems))


if __name__ == "__main__":
    xml_main.main()
