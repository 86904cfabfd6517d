# SPDX-License-Identifier: Apache-2.0
"""Limits of CPU and disk for one process, by cgroups of version 1 or 2."""
import contextlib
import os
from pathlib import Path

from harness import need

ROOT = Path("/sys/fs/cgroup")
NAME = "tailor-causes"


def remove_leftovers():
    """Groups of runs that were killed, and whose processes are gone."""
    for path in [*ROOT.glob(f"{NAME}-*"), *ROOT.glob(f"*/{NAME}-*")]:
        pid = path.name.split("-")[2]
        if not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):  # a victim lives on, or somebody else has just removed it
                path.rmdir()


class Cgroup:
    """A group of its own below the root, for one controller: "cpu" or "blkio"."""

    def __init__(self, controller):
        self.version = 1 if (ROOT / controller / "cgroup.procs").exists() else 2
        self.parent = ROOT / controller if self.version == 1 else ROOT
        self.path = self.parent / f"{NAME}-{os.getpid()}-{controller}"
        if self.version == 2:
            name = "io" if controller == "blkio" else controller
            need(name in (ROOT / "cgroup.controllers").read_text().split(), f"there is no cgroup controller {name}")
            (ROOT / "cgroup.subtree_control").write_text(f"+{name}")
        self.path.mkdir()
        self.members = []

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))
        self.members.append(pid)

    def limit_cpu(self, quota_us, period_us):
        """quota_us 0: no limit."""
        if self.version == 2:
            (self.path / "cpu.max").write_text(f"{quota_us or 'max'} {period_us}")
            return
        (self.path / "cpu.cfs_period_us").write_text(str(period_us))
        (self.path / "cpu.cfs_quota_us").write_text(str(quota_us or -1))

    def limit_reads(self, device, bytes_per_s):
        """device: a whole disk, as st_dev. 0 bytes: no limit."""
        device = f"{os.major(device)}:{os.minor(device)}"
        if self.version == 2:
            (self.path / "io.max").write_text(f"{device} rbps={bytes_per_s or 'max'}")
        else:
            (self.path / "blkio.throttle.read_bps_device").write_text(f"{device} {bytes_per_s}")

    def close(self):
        for pid in self.members:
            try:
                (self.parent / "cgroup.procs").write_text(str(pid))
            except OSError:
                pass  # it has ended
        self.members = []
        if self.path.exists():
            self.path.rmdir()
