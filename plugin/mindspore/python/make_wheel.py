"""Writes a wheel: a zip archive of files and, in its dist-info folder, what pip reads.

Usage: make_wheel.py WHEEL NAME_IN_WHEEL=FILE ...

A name that begins with `licenses/` goes into the dist-info folder. The wheel's own name says which distribution,
version, Python and machine it is for; its bytes follow from the arguments and files alone.
"""

import base64
import hashlib
import os
import sys
import zipfile

_METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Pipeline parallelism for MindSpore's graph mode, on CPUs
License: Apache-2.0
Requires-Python: ==3.11.*
Requires-Dist: mindspore (==2.10.0)
Requires-Dist: numpy (<2)
"""

_WHEEL = """Wheel-Version: 1.0
Generator: make_wheel
Root-Is-Purelib: false
Tag: {tag}
"""

_ENTRY_POINTS = """[console_scripts]
pipeloom-run = pipeloom_run:main
"""


def _add(archive, record, name, data):
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if ".so" in os.path.basename(name) else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data, compresslevel=1)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(data)}\n")


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    wheel, *files = arguments
    name, version, tag = os.path.basename(wheel)[:-len(".whl")].split("-", 2)
    info = f"{name}-{version}.dist-info/"
    record = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted(files):
            target, source = file.split("=", 1)
            with open(source, "rb") as data:
                _add(archive, record, (info if target.startswith("licenses/") else "") + target, data.read())
        for target, text in (("METADATA", _METADATA), ("WHEEL", _WHEEL), ("entry_points.txt", _ENTRY_POINTS)):
            _add(archive, record, info + target, text.format(name=name, version=version, tag=tag).encode())
        record.append(f"{info}RECORD,,\n")
        archive.writestr(zipfile.ZipInfo(info + "RECORD", date_time=(1980, 1, 1, 0, 0, 0)), "".join(record))


if __name__ == "__main__":
    main(sys.argv[1:])
