"""Reads a safetensors file: a length, a JSON header, then the elements."""

import json
import struct

import torch

_DTYPES = {"F32": torch.float32, "I32": torch.int32}


def read(path):
    """Returns {name: torch.Tensor}."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(content[begin:end], dtype=_DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
