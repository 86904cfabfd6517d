# SPDX-License-Identifier: Apache-2.0
"""Causes within the victim: a lock, a disk, memory, classes, and what is no fault at all."""
import itertools
import os
import socket
import threading

from harness import need

from .cgroup import Cgroup
from .plant import Alone, Planting
from .stage import CLASSES, DISK_BYTES
from .traffic import now_ns


class OnCpu(Alone):
    name = "computing"
    accepted = ("on-cpu",)
    why = "the request takes 30 ms of CPU time, and nothing is wrong"
    target = "/compute?us=30000"


class Sleep(Alone):
    name = "sleeping"
    accepted = ("sleep",)
    why = "the server's thread calls Thread.sleep: a timer ends the wait"
    target = "/sleep?ms=30"


class Lock(Alone):
    name = "lock"
    accepted = ("blocked-lock",)
    why = "another thread holds the monitor, by turns computing and sleeping; it is the lock that the request waits for"

    def set_up(self, stage):
        # HotSpot looks every now and then, after 1 ms, 8 ms more and so on, whether it has missed that a monitor is free.
        self.how = itertools.cycle(["35 working", "18 sleeping", "18 working", "35 sleeping"])

    def prepare(self, stage):
        stage.tell(f"hold {next(self.how)}")
        return "/lock"


class Queue(Alone):
    name = "queue"
    accepted = ("server-queue",)
    why = "the server has one worker, and it computes 35 ms for another request that came before"

    def prepare(self, stage):
        stage.send("/pool?us=35000")
        stage.run(3)
        return "/pool?us=300"


class Backend(Alone):
    name = "backend"
    accepted = ("blocked-network",)
    why = "the server's thread waits for bytes that another program sends 30 ms later"
    wait_s = 0.03

    def set_up(self, stage):
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self):
        wait = threading.Event()
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            with connection:
                connection.recv(1)
                wait.wait(self.wait_s)
                connection.send(b"!")

    def prepare(self, stage):
        return f"/backend?port={self.listener.getsockname()[1]}"

    def tear_down(self, stage):
        self.listener.close()


class CollectionBeside(Backend):
    name = "backend-beside-gc"
    why = "the server's thread waits 120 ms or more for another program; a collection of about half of that meanwhile does not make it longer"
    wait_s = 0.12

    def set_up(self, stage):
        super().set_up(stage)
        stage.tell("live 80")
        stage.tell("collect")
        begin_ns = now_ns()
        stage.tell("collect")
        # Twice what one takes here, which differs a lot from machine to machine.
        self.wait_s = max(self.wait_s, 2 * (now_ns() - begin_ns) / 1e9)

    def plant(self, stage):
        request = stage.send(self.prepare(stage))
        stage.traffic.background = False  # who comes meanwhile waits for the collection
        stage.run(10)
        stage.tell("collect")
        stage.traffic.finish()
        stage.traffic.background = True
        return Planting([request])

    def tear_down(self, stage):
        stage.tell("live 0")
        stage.tell("collect")
        super().tear_down(stage)


class SlowDisk(Alone):
    """
    The victim may read only so many bytes a second from the disk that only the planted files are on; what it reads is not in memory.
    An {offset} in the target is another one each time.
    """
    bytes_per_s = 0
    file = "disk"
    step = 2 << 20
    # What a disk that was idle lets pass at once is not slow.
    least_ms = 40
    most_ms = 1000  # a request reads no more than a quarter of a second's bytes

    def set_up(self, stage):
        need(not stage.files.no_disk, stage.files.no_disk)
        self.path = getattr(stage.files, self.file)
        self.group = Cgroup("blkio")
        self.group.add(stage.victim.pid)
        self.group.limit_reads(os.stat(self.path).st_dev, self.bytes_per_s)
        self.offsets = itertools.cycle(range(0, DISK_BYTES, self.step))

    def prepare(self, stage):
        self.forget()
        return self.target.format(offset=next(self.offsets))

    def forget(self):
        """Drops the file's pages, but those that somebody maps."""
        descriptor = os.open(self.path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def tear_down(self, stage):
        self.group.close()


class Disk(SlowDisk):
    name = "disk"
    accepted = ("blocked-io",)
    why = "pread of a file that is not in memory, from a disk of 4 MiB/s"
    bytes_per_s = 4 << 20
    target = f"/disk?offset={{offset}}&bytes={512 << 10}"


class MajorFault(SlowDisk):
    name = "major-fault"
    accepted = ("page-fault-major",)
    why = "the thread touches a mapping of a file that is not in memory, on a disk of 2 MiB/s"
    bytes_per_s = 2 << 20
    target = f"/map?offset={{offset}}&bytes={256 << 10}"


class MinorFault(Alone):
    name = "minor-faults"
    accepted = ("page-fault-minor",)
    needs = ("page fault durations",)
    why = "48 MiB of memory that malloc just got from the kernel, touched page by page: hardly anything but faults"
    target = "/memory?mib=48"


class Classes(Alone):
    name = "class-loading"
    accepted = ("class-loading",)
    why = f"{CLASSES} classes of 800 methods, from a jar that is in memory: hardly anything but parsing, defining and linking them"
    target = f"/classes?count={CLASSES}"
    # Where the host had no memory at hand for them all the same, faults add half of it and more.
    usual = 1.3

    def prepare(self, stage):
        # They need new memory. Where the machine's host has yet to find some, faults take longer than the classes; what was just given back it has.
        stage.tell("touch 48")
        return self.target


class SlowJar(SlowDisk):
    name = "class-loading-slow-jar"
    accepted = ("class-loading", "blocked-io")
    why = "classes from a jar that is not in memory, on a disk of 4 MiB/s: it is the disk that the class loader waits for; both say so"
    bytes_per_s = 4 << 20
    file = "jar"
    target = "/classes?count=8"


PLANTS = [OnCpu, Sleep, Lock, Queue, Backend, CollectionBeside, Disk, MajorFault, MinorFault, Classes, SlowJar]
