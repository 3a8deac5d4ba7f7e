"""Prints mindspore_updates.h: steps of MindSpore's own CPU optimizers, for apply_update_test.

Run by hand, with mindspore==2.10.0 (PyPI) and numpy<2 on a machine with AVX-512:
    python make_mindspore_updates.py > mindspore_updates.h && clang-format -i mindspore_updates.h
"""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.ops import operations as P

ELEMENTS = 19  # one block of 16 and a rest
STEPS = 3

ms.set_context(mode=ms.PYNATIVE_MODE)
random = np.random.RandomState(3)
weight = random.randn(ELEMENTS).astype(np.float32)
gradients = random.randn(STEPS, ELEMENTS).astype(np.float32)


def literals(array):
    if array.ndim > 1:
        return "{" + ", ".join(literals(part) for part in array) + "}"
    return "{" + ", ".join(float(x).hex() + "f" for x in array) + "}"


def define(name, array):
    extents = "".join(f"[{extent}]" for extent in array.shape)
    print(f"inline constexpr float {name}{extents} = {literals(array)};\n")


def scalar(value):
    return Tensor(np.float32(value))


def run(name, states, step):
    """step(t, parameters, gradient) for each t from 1; what the parameters hold after each."""
    parameters = [Parameter(Tensor(weight), name="w")]
    parameters += [Parameter(Tensor(np.full(ELEMENTS, s, np.float32)), name=f"s{i}") for i, s in enumerate(states)]
    after = []
    for t in range(STEPS):
        step(t + 1, parameters, Tensor(gradients[t]))
        after.append([p.asnumpy().copy() for p in parameters])
    define(name, np.array(after))


def power(beta, t):
    return float(np.float32(beta)) ** t


def sgd(dampening, weight_decay, nesterov, momentum):
    op = P.SGD(dampening, weight_decay, nesterov)
    return lambda t, p, g: op(p[0], g, scalar(0.03), p[1], scalar(momentum), p[2])


def momentum():
    op = P.ApplyMomentum()
    return lambda t, p, g: op(p[0], p[1], scalar(0.03), g, scalar(0.9))


def adam(nesterov):
    op = P.Adam(use_nesterov=nesterov)
    return lambda t, p, g: op(p[0], p[1], p[2], scalar(power(0.9, t)), scalar(power(0.999, t)),
                              scalar(0.01), scalar(0.9), scalar(0.999), scalar(1e-8), g)


def adamw():
    op = P.AdamWeightDecay()
    return lambda t, p, g: op(p[0], p[1], p[2], scalar(0.01), scalar(0.9), scalar(0.999), scalar(1e-6), scalar(0.1), g)


print("#ifndef TESTS_KERNELS_MINDSPORE_UPDATES_H_\n#define TESTS_KERNELS_MINDSPORE_UPDATES_H_\n")
print("// Made by make_mindspore_updates.py. Of each run: after every step, the weight and its states.")
print("namespace pipeloom::mindspore_updates {\n")
print(f"inline constexpr int kElements = {ELEMENTS};\ninline constexpr int kSteps = {STEPS};\n")
define("kWeight", weight)
define("kGradients", gradients)
run("kSgd", [0.25, 1], sgd(0.0, 0.0, False, 0.9))
run("kSgdDampened", [0.25, 1], sgd(0.3, 0.1, False, 0.9))
run("kSgdNesterov", [0.25, 1], sgd(0.0, 0.1, True, 0.9))
run("kSgdWithoutMomentum", [0.25, 1], sgd(0.0, 0.1, False, 0.0))
run("kMomentum", [0.25], momentum())
run("kAdam", [0, 0], adam(False))
run("kAdamNesterov", [0, 0], adam(True))
run("kAdamW", [0, 0], adamw())
print("}  // namespace pipeloom::mindspore_updates\n\n#endif  // TESTS_KERNELS_MINDSPORE_UPDATES_H_")
