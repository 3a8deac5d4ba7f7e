"""Training with our cells and with PyTorch, from the same initial weights.

train_cases trains each network on stages and in micro-batches. Here PyTorch
trains the same ones, with its own layers, gradients and optimizers, on the
same inputs; the losses of 20 steps and the weights after them agree within
1e-5, those of a tensor relative to its largest one.
"""

import os
import subprocess
import tempfile
import unittest

from tests.checks import xml_main

try:
    import torch
    import torch.nn.functional as F
    from tests.pytorch import safetensors
    HAVE_TORCH = True
except ImportError:
    HAVE_TORCH = False

TOLERANCE = 1e-5
STEPS = 20
BINARY = os.path.join("tests", "pytorch", "train_cases")
DIGITS = os.path.join("third_party", "mnist_digits")


def dense(weights, name, x):
    return F.linear(x, weights[name + ".weight"], weights[name + ".bias"])


def mnist_network(weights, x):
    x = F.relu(x.flatten(1) @ weights["layer1.param"])
    x = F.relu(dense(weights, "layer2", x))
    return dense(weights, "layer3", x)


def activations(weights, x):
    x = F.gelu(dense(weights, "1", x.flatten(1)), approximate="tanh")
    x = torch.tanh(dense(weights, "3", x))
    x = F.gelu(dense(weights, "5", x))
    return dense(weights, "7", x)


def layer_norm(weights, name, x, eps):
    return F.layer_norm(x, x.shape[1:], weights[name + ".gamma"],
                        weights[name + ".beta"], eps)


def normalizations(weights, x):
    x = layer_norm(weights, "2", dense(weights, "1", x.flatten(1)), 1e-5)
    x = layer_norm(weights, "4", F.softmax(x, dim=1), 1e-3)
    return F.log_softmax(dense(weights, "5", x), dim=1)


def tied_autoencoder(weights, x):
    x = torch.tanh(dense(weights, "first", x.flatten(1)))
    return dense(weights, "middle", x) @ weights["first.weight"]


def cross_entropy(logits, labels, **options):
    return F.cross_entropy(logits, labels.long(), **options)


def train(record, network, loss_function, make_optimizer, micro_batches,
          loss_reduction):
    """Returns the losses, and the weights after them."""
    weights = {
        name[len("initial."):]: value.clone().requires_grad_()
        for name, value in record.items() if name.startswith("initial.")
    }
    optimizer = make_optimizer(list(weights.values()))
    losses = []
    for images, targets in zip(record["images"], record["targets"]):
        parts = zip(images.chunk(micro_batches), targets.chunk(micro_batches))
        loss = sum(loss_function(network(weights, x), y) for x, y in parts)
        if loss_reduction == "mean":
            loss = loss / micro_batches
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, {name: value.detach() for name, value in weights.items()}


def distance(actual, expected):
    """The largest difference, relative to the largest expected value."""
    return ((actual - expected).abs().max() / expected.abs().max()).item()


@unittest.skipUnless(
    HAVE_TORCH, "there is no PyTorch for this Python to compare with; "
    "to have it: apt-get install python3-torch")
class SameAsPytorch(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        torch.set_num_threads(1)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([BINARY, DIGITS, cls.folder.name], check=True)

    def check_losses(self, name, *how):
        """Returns what train_cases wrote, and PyTorch's weights."""
        record = safetensors.read(
            os.path.join(self.folder.name, name + ".safetensors"))
        losses, weights = train(record, *how)
        self.assertEqual(record["losses"].shape, (STEPS,))
        self.assertEqual(len(losses), STEPS)
        for step, expected in enumerate(losses):
            off = distance(record["losses"][step], expected)
            self.assertLess(off, TOLERANCE, f"loss of step {step}")
        return record, weights

    def check(self, name, *how):
        record, weights = self.check_losses(name, *how)
        self.assertEqual({"final." + key for key in weights},
                         {key for key in record if key.startswith("final.")})
        for key, expected in weights.items():
            actual = record["final." + key]
            self.assertEqual(actual.shape, expected.shape)
            self.assertLess(distance(actual, expected), TOLERANCE, key)
            self.assertGreater(distance(actual, record["initial." + key]),
                               100 * TOLERANCE, key + " is hardly trained")

    def test_sgd(self):
        self.check("sgd", mnist_network, cross_entropy,
                   lambda weights: torch.optim.SGD(weights, lr=1e-2), 4, "sum")

    def test_nesterov_momentum_and_weight_decay(self):
        self.check(
            "momentum", mnist_network, cross_entropy,
            lambda weights: torch.optim.SGD(weights, lr=1e-2, momentum=0.9,
                                            weight_decay=1e-4, nesterov=True),
            4, "mean")

    def test_adam(self):
        self.check("adam", mnist_network, cross_entropy,
                   lambda weights: torch.optim.Adam(
                       weights, lr=1e-3, eps=1e-4, weight_decay=1e-2), 2,
                   "mean")

    def test_adamw(self):
        self.check("adamw", mnist_network, cross_entropy,
                   lambda weights: torch.optim.AdamW(
                       weights, lr=1e-3, eps=1e-4, weight_decay=0.5), 2,
                   "mean")

    def test_losses_of_adam_with_the_eps_of_its_authors(self):
        # The first step is lr g / (|g| + eps). Among 400,000 gradients there
        # are some that cancel to 1e-10: with an eps of 1e-8 their rounding
        # moves weights by 1e-4 of the largest, PyTorch's from one in double as
        # much as ours. So the weights are compared above, with a larger eps.
        self.check_losses("adam_default", mnist_network, cross_entropy,
                          lambda weights: torch.optim.Adam(weights, lr=1e-3),
                          2, "mean")

    def test_activations_and_mse(self):
        self.check("activations", activations, F.mse_loss,
                   lambda weights: torch.optim.SGD(weights, lr=1e-1), 4,
                   "mean")

    def test_layer_norm_and_softmax(self):
        self.check("normalizations", normalizations, F.mse_loss,
                   lambda weights: torch.optim.SGD(weights, lr=1e-1), 4,
                   "mean")

    def test_tied_weight(self):
        self.check("tied", tied_autoencoder, F.mse_loss,
                   lambda weights: torch.optim.SGD(weights, lr=1e-1), 4, "sum")

    def test_ignored_labels(self):

        def without_sevens(logits, labels):
            return cross_entropy(logits, labels, ignore_index=7)

        self.check("ignored_labels", mnist_network, without_sevens,
                   lambda weights: torch.optim.SGD(weights, lr=1e-2), 4, "sum")


if __name__ == "__main__":
    xml_main.main()
