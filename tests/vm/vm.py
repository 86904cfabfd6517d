#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel's recording and the whole program on Debian 12's own kernel (6.1), in a virtual machine.

It differs from newer kernels in the probes that it has (no sock_send_length; fentry and fexit allowed): the same test programs that
run on this host run there, from a memory image that holds them, their libraries and busybox, and nothing else.
vm.py FOLDER: where the test programs were built.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
BUILD = SOURCE.parent.parent / "build" / "vm"
TAILOR = Path(os.environ["TAILOR"])
MEMORY_MIB = 1024
# Where KVM does not work (nested, hardened) the machine hangs before its first word.
KVM_START_S, START_S, RUN_S = 5, 60, 480
# A test that does not end is ended by the machine itself after TEST_S, and said. A machine that says nothing for longer has hung as a
# whole, whatever its kernel says: what has not ended yet is run in another one, so often. Emulated ones do now and then (qemu 7.2 with
# a thread a CPU): when the kernel patches its own code (a tracepoint, statistics on or off), both CPUs keep the translation of the
# breakpoint that it put there meanwhile, and trap on it for ever, although the memory holds the new instruction. Or only one of them
# does, and takes one test with it: what an emulated machine had to end is run in another one, too.
TEST_S, SILENT_S, BOOTS = 60, 70, 3
SKIPPED, OUT_OF_TIME = "77", "143"
SYSTEM_LIBRARIES = "lib/x86_64-linux-gnu/"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(int(SKIPPED))


def libraries(programs):
    """Every shared library that they need, and the loader."""
    found = set()
    for program in programs:
        text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found.update(re.findall(r"(/\S+) \(0x", text))
    return found


def image(folder, tests):
    root = folder / "root"
    for name in ("bin", "tests", "proc", "sys", "dev", "tmp", "run"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUILD / "busybox", root / "bin")
    applets = subprocess.run([BUILD / "busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    shutil.copy(SOURCE / "init", root / "init")
    programs = [TAILOR, Path(os.environ["SLOW_SERVER"])]
    for program in programs:
        shutil.copy(program, root / "bin" / program.name)
    for test in [*tests, SOURCE / "whole.sh"]:
        shutil.copy(test, root / "tests" / test.name)
    for library in libraries([*programs, *tests]):
        # Our own are found beside the system's, too: where they were built may be a folder that the machine mounts something over.
        own = not library.startswith(("/lib", "/usr"))
        target = root / (SYSTEM_LIBRARIES + Path(library).name if own else library.lstrip("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    for path in (root / "init", *(root / "tests").iterdir()):
        path.chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = folder / "image"
    with archive.open("wb") as out:
        subprocess.run([BUILD / "busybox", "cpio", "-o", "-H", "newc"], cwd=root, input=names.encode(), stdout=out,
                       stderr=subprocess.DEVNULL, check=True)
    return archive


def spoken(text):
    """What its programs have said in whole lines: a kernel goes on about a CPU that hangs for as long as it does."""
    return re.sub(r"^\[ *\d+\.\d+\].*$", "", text[:text.rfind("\n") + 1], flags=re.MULTILINE).strip()


def boot(archive, accelerator, start_s, until, leave_out=()):
    """Runs the machine to its end, without those tests. Returns what it printed, and how it ended: "done", "slow" (it was not done at
    that time), "hung", or "dead" when it did not come up.
    """
    print(f"booting with {accelerator}", flush=True)
    command = ["qemu-system-x86_64", "-accel", accelerator, "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-smp", "2",
               "-m", str(MEMORY_MIB), "-kernel", BUILD / "vmlinuz", "-initrd", archive, "-append", f"console=ttyS0 panic=-1 loglevel=4 -- {TEST_S} {' '.join(leave_out)}"]
    if accelerator == "kvm":
        command += ["-cpu", "host"]
    else:
        command += ["-cpu", "max"]
    began, spoke, text = time.monotonic(), time.monotonic(), ""
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.set_blocking(machine.stdout.fileno(), False)
    try:
        while time.monotonic() < until:
            piece = machine.stdout.read()
            if piece:
                before = spoken(text)
                text += piece.decode(errors="replace")
                if spoken(text) != before:
                    spoke = time.monotonic()
                sys.stdout.write(piece.decode(errors="replace"))
                sys.stdout.flush()
            elif machine.poll() is not None:
                return text, "done"
            else:
                time.sleep(0.05)
            if "vm: Linux" not in text and time.monotonic() - began > start_s:
                return text, "dead"
            if time.monotonic() - spoke > SILENT_S:
                return text, "hung"
        return text, "slow"
    finally:
        machine.kill()
        machine.wait()


def ends(text):
    """How each test ended that has."""
    return dict(re.findall(r"^vm: end (\S+) (\d+)", text.replace("\r", ""), re.MULTILINE))


def judge(ended, names):
    """Every test must have said that it ended, and how."""
    failed = 0
    for name in names:
        status = ended.get(name)
        how = "passed" if status == "0" else "was skipped" if status == SKIPPED else f"failed ({status or 'did not end'})"
        failed += status not in ("0", SKIPPED)
        print(f"  {name}: {how}")
    if all(ended.get(name) == SKIPPED for name in names):
        skip("every test was skipped in the virtual machine")
    return failed


def run_all(archive):
    """How each test ended, in as many machines as it takes."""
    until, ended, boots = time.monotonic() + RUN_S, {}, 0
    emulated = not os.access("/dev/kvm", os.R_OK | os.W_OK)
    while boots < BOOTS:
        accelerator, start_s = ("tcg,thread=multi", START_S) if emulated else ("kvm", KVM_START_S)
        text, how = boot(archive, accelerator, start_s, until, [name for name in ended if ended[name] != OUT_OF_TIME])
        if how == "dead" and not emulated:
            print(f"\nwith KVM it did not come up within {KVM_START_S} s: emulating")
            emulated = True
            continue
        boots += 1
        ended |= ends(text)
        if how == "dead":
            print(f"the virtual machine did not come up within {START_S} s")
        elif how == "hung":
            print(f"\nthe virtual machine has said nothing for {SILENT_S} s, although it ends a test after {TEST_S}: it hangs")
        elif how == "slow":
            print(f"the virtual machine was not done after {RUN_S} s")
            break
        elif not emulated or OUT_OF_TIME not in ended.values():
            break
    return ended


def main():
    reason = BUILD / "why-not"
    if reason.exists():
        skip(reason.read_text().strip())
    if not (BUILD / "vmlinuz").exists():
        skip("there is no kernel in build/vm: tests/vm/prepare.py fetches it (./run test does that)")
    tests = sorted(Path(sys.argv[1]).glob("test_integration_kernel_*"))
    if not tests:
        sys.exit("there is no test of the kernel's recording to run")
    with tempfile.TemporaryDirectory(prefix="tailor-vm-") as folder:
        ended = run_all(image(Path(folder), tests))
        sys.exit(1 if judge(ended, [*(test.name for test in tests), "whole.sh"]) else 0)


if __name__ == "__main__":
    main()
