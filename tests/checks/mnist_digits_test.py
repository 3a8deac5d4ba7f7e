"""The digits that samples train on: real IDX files, none lost, none twice."""

import os
import struct
import unittest

from tests.checks import xml_main

DIRECTORY = os.path.join("third_party", "mnist_digits")
PIXELS = 28 * 28


def read(*path):
    with open(os.path.join(DIRECTORY, *path), "rb") as file:
        return file.read()


def read_set(folder, prefix):
    """Returns the images (bytes of 784 pixels) and the labels of one set."""
    images = read(folder, prefix + "-images-idx3-ubyte")
    labels = read(folder, prefix + "-labels-idx1-ubyte")
    magic, count, rows, columns = struct.unpack(">IIII", images[:16])
    assert (magic, rows, columns) == (0x803, 28, 28), images[:16]
    assert len(images) == 16 + count * PIXELS, (len(images), count)
    assert struct.unpack(">II", labels[:8]) == (0x801, count), labels[:8]
    assert len(labels) == 8 + count, (len(labels), count)
    return ([images[i:i + PIXELS] for i in range(16, len(images), PIXELS)],
            list(labels[8:]))


class MnistDigits(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train_images, cls.train_labels = read_set("train", "train")
        cls.test_images, cls.test_labels = read_set("test", "t10k")

    def test_counts(self):
        for label in range(10):
            with self.subTest(label=label):
                self.assertEqual(self.train_labels.count(label), 400)
                self.assertEqual(self.test_labels.count(label), 100)
        self.assertEqual(len(self.train_labels), 4000)
        self.assertEqual(len(self.test_labels), 1000)

    def test_no_digit_is_in_both_sets(self):
        self.assertFalse(set(self.train_images) & set(self.test_images))

    def test_images_are_digits(self):
        # MNIST's digits use the whole range, and stand in a margin of zeros.
        for image in self.train_images + self.test_images:
            self.assertGreater(max(image), 128)
            self.assertEqual(max(image[:28]), 0)
        # The published mean of MNIST's pixels is 0.1307.
        total = sum(sum(image) for image in self.train_images)
        mean = total / 255 / PIXELS / len(self.train_images)
        self.assertAlmostEqual(mean, 0.1307, delta=0.005)


if __name__ == "__main__":
    xml_main.main()
