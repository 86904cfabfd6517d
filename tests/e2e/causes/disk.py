# SPDX-License-Identifier: Apache-2.0
"""A disk that only the planted files are on, so that nothing else is slow when it is: neither the victim's code nor the machine."""
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from harness import Skip, need

# What a reader gets beside what it asked for. Disks of machines have some MiB, which take seconds at the plants' speeds.
READ_AHEAD_KIB = 128
SYSTEM = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _run(program, *arguments):
    path = shutil.which(program, path=SYSTEM)
    need(path, f"there is no {program}")
    result = subprocess.run([path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    need(result.returncode == 0, f"{program} failed: {result.stdout.strip()}")


def _mount(image, mib, path):
    with open(image, "wb") as file:
        file.truncate(mib << 20)
    # All there is to write is written now, and no journal comes later: the plants read from a disk that does nothing else.
    _run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", image)
    _run("mount", "-o", "loop,noatime", image, path)
    device = os.stat(path).st_dev
    try:
        Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/read_ahead_kb").write_text(str(READ_AHEAD_KIB))
    except OSError as error:
        raise Skip(f"the loop device's read-ahead cannot be set: {error}") from error


@contextlib.contextmanager
def own_disk(directory, mib):
    """
    A new ext4 on a loop device, mounted below `directory`: its path. Skip: not to be had here.

    Nothing is left behind, also not by a run that was killed: the image loses its name, the device detaches itself with the mount,
    and the mount ends with the last process of this mount namespace, which must be the test's own. It is undone lazily: victims may
    have files open until they end.
    """
    image, path = directory / "planted.ext4", directory / "planted"
    path.mkdir()
    try:
        try:
            _mount(image, mib, path)
        finally:
            image.unlink(missing_ok=True)
        yield path
    finally:
        if os.path.ismount(path):
            _run("umount", "--lazy", path)
        path.rmdir()
