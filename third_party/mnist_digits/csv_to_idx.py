"""Turns mnist_5k.csv.gz into the four IDX files of an MNIST data set.

Each row of the source is one digit: 784 pixels (28 rows of 28, 0..255), then
its label. Rows are sorted by label, 500 of each. The last 100 of each label
become the test set, the other 400 the training set, in the order of the file.

Usage: csv_to_idx.py SOURCE.csv.gz OUTPUT_DIRECTORY
"""

import csv
import gzip
import os
import struct
import sys

SIDE = 28
LABELS = 10
ROWS_OF_A_LABEL = 500
TEST_ROWS_OF_A_LABEL = 100

IMAGES_MAGIC = 0x00000803  # unsigned bytes, three dimensions
LABELS_MAGIC = 0x00000801  # unsigned bytes, one dimension


def read_digits(source):
    """Returns a list, by label, of lists of images (bytes of 784 pixels)."""
    digits = [[] for _ in range(LABELS)]
    with gzip.open(source, "rt", newline="") as text:
        for number, row in enumerate(csv.reader(text), start=1):
            if len(row) != SIDE * SIDE + 1:
                raise ValueError(f"{source}, row {number}: {len(row)} fields, "
                                 f"expected {SIDE * SIDE + 1}")
            label = int(row[-1])
            if not 0 <= label < LABELS:
                raise ValueError(f"{source}, row {number}: label {label} is "
                                 f"not in 0..{LABELS - 1}")
            digits[label].append(bytes(int(pixel) for pixel in row[:-1]))
    for label, images in enumerate(digits):
        if len(images) != ROWS_OF_A_LABEL:
            raise ValueError(f"{source}: {len(images)} rows of label {label}, "
                             f"expected {ROWS_OF_A_LABEL}")
    return digits


def write_set(digits, directory, prefix):
    """Writes the images and labels files of one set into `directory`."""
    os.makedirs(directory, exist_ok=True)
    images = [image for label in digits for image in label]
    labels = bytes(label for label, of in enumerate(digits) for _ in of)
    with open(os.path.join(directory, prefix + "-images-idx3-ubyte"),
              "wb") as out:
        out.write(struct.pack(">IIII", IMAGES_MAGIC, len(images), SIDE, SIDE))
        out.write(b"".join(images))
    with open(os.path.join(directory, prefix + "-labels-idx1-ubyte"),
              "wb") as out:
        out.write(struct.pack(">II", LABELS_MAGIC, len(labels)))
        out.write(labels)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    source, output = arguments
    digits = read_digits(source)
    train = [images[:-TEST_ROWS_OF_A_LABEL] for images in digits]
    test = [images[-TEST_ROWS_OF_A_LABEL:] for images in digits]
    write_set(train, os.path.join(output, "train"), "train")
    write_set(test, os.path.join(output, "test"), "t10k")


if __name__ == "__main__":
    main(sys.argv[1:])
