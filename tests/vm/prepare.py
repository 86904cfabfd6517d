#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches what tests/vm boots into build/vm: Debian's own kernel, unpacked and not installed, and a static busybox.

Nothing is fetched twice. What cannot be had is said, and is no error: the test is then skipped with that reason.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent.parent / "build" / "vm"
KERNEL, BUSYBOX, REASON = BUILD / "vmlinuz", BUILD / "busybox", BUILD / "why-not"


def unpack(package, member, to):
    """Downloads a Debian package and takes one file out of it."""
    subprocess.run(["apt-get", "-qq", "download", package], cwd=BUILD, check=True, stderr=subprocess.DEVNULL, timeout=300)
    archive = max(BUILD.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", BUILD, "--wildcards", member], stdin=tar.stdout, check=True)
    # tar may stop reading before dpkg-deb has written all.
    tar.stdout.close()
    tar.wait()
    shutil.move(next(BUILD.glob(member)), to)
    archive.unlink()


def kernel_package():
    """What Debian 12's metapackage stands for now."""
    text = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Depends: (linux-image-6\.1\S+)", text)
    if not found:
        raise RuntimeError("linux-image-amd64 is not a 6.1 kernel here: these packages are not Debian 12's")
    return found.group(1)


def prepare():
    BUILD.mkdir(parents=True, exist_ok=True)
    REASON.unlink(missing_ok=True)
    try:
        if not shutil.which("qemu-system-x86_64"):
            raise RuntimeError("qemu-system-x86_64 is not installed (Debian: qemu-system-x86)")
        if not BUSYBOX.exists():
            unpack("busybox-static", "./bin/busybox", BUSYBOX)
        if not KERNEL.exists():
            print("tests/vm: fetching Debian's kernel (70 MB, once)", file=sys.stderr)
            unpack(kernel_package(), "./boot/vmlinuz-*", KERNEL)
    except (OSError, RuntimeError, StopIteration, ValueError, subprocess.SubprocessError) as error:
        REASON.write_text(f"{error}\n")
        print(f"tests/vm: will be skipped: {error}", file=sys.stderr)


if __name__ == "__main__":
    os.umask(0o022)
    prepare()
