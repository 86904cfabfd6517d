# SPDX-License-Identifier: Apache-2.0
"""Wrong configs, taken ports, absent servers, damaged stores: one line that names the thing and the remedy, the right
exit code, and nothing left behind."""
import ctypes
import errno
import os
import random
import re
import resource
import shutil
import socket
import struct
import subprocess
import time

import harness
from harness import check

USAGE = 2
FAILED = 1

# linux/seccomp.h, linux/prctl.h, linux/mount.h, linux/sched.h; the number of io_uring_setup is the same on all architectures.
IO_URING_SETUP = 425
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_ALLOW = 0x7FFF0000
CLONE_NEWNS = 0x00020000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18


def config(directory, **changes):
    """A good config with some lines changed; None removes one. Returns the file's path."""
    lines = {
        "listen": "127.0.0.1:0",
        "servers": "[{name: a, address: '127.0.0.1:9'}]",
        "slow": "{threshold: 5ms, baseline_one_in: 1000}",
        "timelines": f"{{path: {directory}/timelines, max_size: 1MiB}}",
        "admin": f'{{listen: "unix:{directory}/admin.sock"}}',
        "agent": f"{{socket: {directory}/agent.sock}}",
        **changes,
    }
    path = directory / "tailor.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in lines.items() if value is not None))
    return path


def left_behind(scene):
    return sorted(path.name for path in scene.directory.rglob("*") if path.is_socket())


def refused(scene, arguments, code, *words, preexec=None):
    """Runs tailor and checks that it fails with `code` and one line on stderr that holds all `words`."""
    result = subprocess.run([harness.TAILOR, *map(str, arguments)], capture_output=True, text=True, timeout=20, preexec_fn=preexec)
    what = f"tailor {' '.join(map(str, arguments))}"
    check(result.returncode == code, f"{what} ended with {result.returncode}, not {code}: {result.stderr}")
    check(result.stdout == "", f"{what} printed on stdout: {result.stdout[:200]}")
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Try `")]
    check(len(lines) == 1, f"{what} said {len(lines)} lines:\n{result.stderr}")
    for word in words:
        check(word in lines[0], f"{what} does not name {word!r}: {lines[0]}")
    check(not left_behind(scene), f"{what} left {left_behind(scene)}")
    return lines[0]


def a_wrong_config_is_refused_with_its_line(scene):
    directory = scene.directory
    cases = [
        ({"slow": "{threshold: 5ms, treshold: 6ms}"}, 3, ["treshold"]),
        ({"retries": "3"}, 7, ["retries"]),
        ({"slow": "{threshold: 5}"}, 3, ["slow.threshold", "5", "ms"]),
        ({"slow": "{threshold: 5 parsecs}"}, 3, ["slow.threshold", "parsecs"]),
        ({"timelines": "{path: ./t, max_size: 5ms}"}, 4, ["timelines.max_size", "5ms", "MiB"]),
        ({"servers": "[{name: a, address: '127.0.0.1:9'}, {name: a, address: '127.0.0.1:10'}]"}, 2, ["a"]),
        ({"servers": "[{name: a, address: '127.0.0.1:9'}, {name: b, address: '127.0.0.1:9'}]"}, 2, ["127.0.0.1:9"]),
        ({"servers": "[{name: a, address: nowhere}]"}, 2, ["nowhere"]),
        ({"listen": "8080"}, 1, ["listen", "8080"]),
        ({"agent": f"{{socket: /tmp/{'x' * 120}.sock}}"}, 6, ["agent.socket", "107"]),
        ({"admin": f'{{listen: "unix:/tmp/{"x" * 120}.sock"}}'}, 5, ["admin.listen"]),
        ({"listen": None}, 1, ["listen"]),
        ({"slow": "{threshold: 5ms"}, None, []),
    ]
    for changes, line, words in cases:
        path = config(directory, **changes)
        for command in ("check", "proxy"):
            text = refused(scene, [command, "-c", path], USAGE, *words)
            match = re.match(rf"{re.escape(str(path))}:(\d+): ", text)
            check(match, f"no file and line: {text}")
            check(line is None or int(match[1]) == line, f"line {line} is wrong, but: {text}")
    check(not (directory / "timelines").exists(), "a refused config made a store")


def a_missing_config_and_wrong_usage_are_refused(scene):
    refused(scene, ["proxy", "-c", scene.directory / "none.yaml"], USAGE, "none.yaml", "No such file")
    refused(scene, ["proxy"], USAGE, "-c")
    refused(scene, ["proxy", "-c", scene.directory], USAGE, str(scene.directory))
    refused(scene, ["load", "--rate", "0", "http://127.0.0.1:1/"], USAGE, "rate")
    refused(scene, ["load"], USAGE)
    refused(scene, ["dump", "--slowest", "many", scene.directory], USAGE, "many")
    refused(scene, ["demo", "--seconds", "0"], USAGE, "seconds")


def a_port_in_use_is_named_and_nothing_is_left_behind(scene):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(scene, ["proxy", "-c", config(scene.directory, listen=f"127.0.0.1:{port}")], FAILED, str(port), "in use")


def a_second_proxy_on_the_same_files_is_refused(scene):
    path = config(scene.directory)
    first = scene.keep(harness.Process("first", [harness.TAILOR, "proxy", "-c", path], scene.directory))
    first.wait_for("tailor: serving", 20)
    sockets = left_behind(scene)
    result = subprocess.run([harness.TAILOR, "proxy", "-c", path], capture_output=True, text=True, timeout=20)
    check(result.returncode == FAILED, f"a second proxy ended with {result.returncode}: {result.stderr}")
    check("another" in result.stderr, f"it does not say that another one is there: {result.stderr}")
    check(first.running() and left_behind(scene) == sockets, "the second proxy took the first one's sockets")
    check(first.stop() == 0, f"the proxy failed:\n{first.log()}")
    check(not left_behind(scene), f"a stopped proxy left {left_behind(scene)}")


def a_server_that_is_down_is_an_answer_not_an_end(scene):
    port = harness.free_port()
    path = config(scene.directory, servers=f"[{{name: a, address: '127.0.0.1:{port}'}}]")
    proxy = scene.keep(harness.Process("proxy", [harness.TAILOR, "proxy", "-c", path], scene.directory))
    own = int(proxy.wait_for(r"tailor: serving 127\.0\.0\.1:(\d+)", 20)[1])
    for method, body in (("GET", None), ("POST", "q=stone"), ("HEAD", None)):
        status, _, _ = harness.get(own, "/search?q=stone", method, body)
        check(status in (502, 503), f"{method} with the server down: {status}")
    check(proxy.running(), "the proxy ended")
    # A server that appears later is found without a restart.
    if harness.JAR.is_file():
        scene.server("a", port=port, warm=0.5).wait_ready()
        deadline = time.monotonic() + 5
        while harness.get(own, "/search?q=stone")[0] != 200:
            check(time.monotonic() < deadline, "the server is up, but the proxy does not use it")
            time.sleep(0.1)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    check(not left_behind(scene), f"it left {left_behind(scene)}")


def what_is_no_store_is_refused(scene):
    directory = scene.directory
    (directory / "foreign").mkdir()
    (directory / "foreign" / "letter.txt").write_text("dear reader\n")
    (directory / "file").write_bytes(b"\x7fELF" + bytes(200))
    refused(scene, ["dump", directory / "none"], FAILED, "none")
    refused(scene, ["dump", directory / "foreign"], FAILED, "foreign")
    refused(scene, ["dump", directory / "file"], FAILED, "file")
    refused(scene, ["proxy", "-c", config(directory, timelines=f"{{path: {directory}/foreign, max_size: 1MiB}}")], FAILED, "foreign")
    check((directory / "foreign" / "letter.txt").read_text() == "dear reader\n", "a foreign file was changed")


def make_store(scene):
    """A store with timelines of a server that is down."""
    path = config(scene.directory, slow="{threshold: 1us, baseline_one_in: 0}")
    proxy = scene.keep(harness.Process("proxy", [harness.TAILOR, "proxy", "-c", path], scene.directory))
    port = int(proxy.wait_for(r"tailor: serving 127\.0\.0\.1:(\d+)", 20)[1])
    for _ in range(30):
        harness.get(port, "/")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    return scene.directory / "timelines"


def a_store_that_was_cut_or_damaged_gives_what_is_whole(scene):
    store = make_store(scene)
    whole = len(scene.dump(store))
    check(whole == 30, f"{whole} timelines of 30 requests, each of which counts as slow")
    segment = max(store.glob("*.tailor"), key=os.path.getsize)
    data = segment.read_bytes()
    seed = 1
    draw = random.Random(seed)
    for length in [0, 1, 15, 16, 17, len(data) // 2, len(data) - 1] + [draw.randrange(len(data)) for _ in range(20)]:
        segment.write_bytes(data[:length])
        result = subprocess.run([harness.TAILOR, "dump", store, "--format", "json"], capture_output=True, text=True, timeout=20)
        # What is whole is shown, and what is not is said.
        check(result.returncode in (0, FAILED), f"cut at {length}: ended with {result.returncode}: {result.stderr}")
        check(result.returncode == 0 or re.fullmatch(r"(tailor dump: .*\n)+", result.stderr), f"cut at {length}: {result.stderr}")
    for length, least, most in ((len(data) // 2, 1, whole - 1), (len(data) - 1, whole - 1, whole - 1)):
        segment.write_bytes(data[:length])
        count = len(scene.dump(store))
        check(least <= count <= most, f"of {whole} timelines in {len(data)} bytes, {length} bytes give {count}")
    for _ in range(50):
        damaged = bytearray(data)
        for _ in range(draw.randrange(1, 20)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        segment.write_bytes(damaged)
        result = subprocess.run([harness.TAILOR, "dump", store, "--format", "json"], capture_output=True, timeout=20)
        check(result.returncode in (0, FAILED), f"a damaged store (seed {seed}) ended dump with {result.returncode}: {result.stderr[-500:]}")


def refuse_io_uring():
    """In the child: a seccomp filter as containers have it, under which io_uring_setup gives EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, give = 0x20, 0x15, 0x06
    program = struct.pack("HBBI", load, 0, 0, 0) + struct.pack("HBBI", equal, 0, 1, IO_URING_SETUP) \
        + struct.pack("HBBI", give, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM) + struct.pack("HBBI", give, 0, 0, SECCOMP_RET_ALLOW)
    code = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(filters), 0, 0):
        os._exit(99)


def without_io_uring_it_says_so_and_how_to_get_it(scene):
    path = config(scene.directory)
    refused(scene, ["proxy", "-c", path], FAILED, "io_uring", "seccomp", preexec=refuse_io_uring)


def hide_types():
    """In the child: a mount namespace of its own in which the kernel's types are covered."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) \
            or libc.mount(b"none", b"/sys/kernel/btf", b"tmpfs", 0, None):
        os._exit(99)


def without_the_kernels_types_it_says_so_or_refuses_as_asked(scene):
    harness.need_root()
    probe = subprocess.run(["true"], preexec_fn=hide_types)
    harness.need(probe.returncode == 0, "/sys/kernel/btf cannot be covered here")
    path = config(scene.directory, trace="{kernel: required}")
    refused(scene, ["proxy", "-c", path], FAILED, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF", preexec=hide_types)
    path = config(scene.directory)
    proxy = subprocess.Popen([harness.TAILOR, "proxy", "-c", path], stderr=subprocess.PIPE, text=True, preexec_fn=hide_types)
    try:
        lines = [proxy.stderr.readline() for _ in range(3)]
        check(any("without kernel events" in line and "CONFIG_DEBUG_INFO_BTF" in line for line in lines), f"it said {lines}")
    finally:
        proxy.terminate()
        check(proxy.wait(10) == 0, "it did not end well")


def wait_for_log(proxy, pattern, seconds=5):
    deadline = time.monotonic() + seconds
    while not re.search(pattern, proxy.log()):
        check(time.monotonic() < deadline, f"within {seconds} s the proxy does not say {pattern!r}:\n{proxy.log()}")
        time.sleep(0.05)


def a_store_that_is_removed_while_it_runs_is_said_once(scene):
    path = config(scene.directory, slow="{threshold: 1us, baseline_one_in: 0}")
    proxy = scene.keep(harness.Process("proxy", [harness.TAILOR, "proxy", "-c", path], scene.directory))
    port = int(proxy.wait_for(r"tailor: serving 127\.0\.0\.1:(\d+)", 20)[1])
    harness.get(port, "/")
    time.sleep(0.2)
    shutil.rmtree(scene.directory / "timelines")
    for _ in range(20):
        harness.get(port, "/")
    wait_for_log(proxy, r"timelines\.path: .*/timelines was removed.*; restart")
    for _ in range(20):
        harness.get(port, "/")
    time.sleep(2.2)
    check(proxy.log().count("was removed") == 1, f"it is said again and again:\n{proxy.log()}")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")


def the_limit_of_open_files_is_raised_and_one_too_low_is_said(scene):
    for hard, said in ((4096, False), (512, True)):
        command = f'ulimit -Sn 256 && ulimit -Hn {hard} && exec "$@"'
        proxy = scene.keep(harness.Process(f"proxy{hard}", ["sh", "-c", command, "sh", harness.TAILOR, "proxy", "-c", config(scene.directory)],
                                           scene.directory))
        proxy.wait_for("tailor: serving", 20)
        with open(f"/proc/{proxy.pid}/limits") as limits:
            soft = int(re.search(r"Max open files +([0-9]+)", limits.read())[1])
        check(soft == hard, f"of {hard} allowed open files the proxy takes {soft}")
        check(("limits.connections is 1024" in proxy.log()) == said, f"with {hard} open files it says:\n{proxy.log()}")
        check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")


def start_with_few_files(path, files):
    """Starts a proxy that may have so many open files. Returns what it said, and whether it served; it has ended well then."""
    proxy = subprocess.Popen([harness.TAILOR, "proxy", "-c", path], stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    try:
        lines = []
        for line in proxy.stderr:
            lines.append(line)
            if line.startswith("tailor: serving"):
                proxy.terminate()
                check(proxy.wait(10) == 0, f"with {files} open files it served, and ended with {proxy.returncode}")
                return lines, True
        check(proxy.wait(10) == FAILED, f"with {files} open files it ended with {proxy.returncode}: {lines}")
        return lines, False
    finally:
        proxy.kill()
        proxy.wait()


def with_too_few_open_files_to_start_it_says_so_whatever_it_was_opening(scene):
    trace = "required" if os.geteuid() == 0 else "off"
    path = config(scene.directory, trace=f"{{kernel: {trace}}}", access_log=f"{{path: {scene.directory}/access.log}}")
    for files in range(6, 300, 3):
        lines, served = start_with_few_files(path, files)
        check(not left_behind(scene), f"with {files} open files it left {left_behind(scene)}")
        if served:
            return
        check("ulimit -n" in lines[-1] and "limits.connections" not in lines[-1], f"with {files} open files it says:\n{''.join(lines)}")
    raise harness.Failure("it does not serve with 300 open files")


def short_of_memory():
    """In the child: too little room for what it reserves for connections."""
    resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))


def without_memory_for_the_connections_it_says_which_key_to_lower(scene):
    path = config(scene.directory, limits="{connections: 100}", trace="{kernel: off}")
    refused(scene, ["proxy", "-c", path], FAILED, "cannot reserve memory", "lower limits.connections", preexec=short_of_memory)


def who_is_refused_at_the_agents_socket_fills_no_log(scene):
    proxy = scene.keep(harness.Process("proxy", [harness.TAILOR, "proxy", "-c", config(scene.directory)], scene.directory))
    proxy.wait_for("tailor: serving", 20)
    for _ in range(200):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(str(scene.directory / "agent.sock"))
            peer.send(b"nonsense")
            peer.recv(1)
    wait_for_log(proxy, "refused pid [0-9]+ at the agents' socket: not an agent")
    check(proxy.log().count("refused") == 1, f"200 refusals are {proxy.log().count('refused')} lines")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")


harness.run(a_wrong_config_is_refused_with_its_line, a_missing_config_and_wrong_usage_are_refused,
            a_port_in_use_is_named_and_nothing_is_left_behind, a_second_proxy_on_the_same_files_is_refused,
            a_server_that_is_down_is_an_answer_not_an_end, what_is_no_store_is_refused,
            a_store_that_was_cut_or_damaged_gives_what_is_whole, without_io_uring_it_says_so_and_how_to_get_it,
            without_the_kernels_types_it_says_so_or_refuses_as_asked, a_store_that_is_removed_while_it_runs_is_said_once,
            the_limit_of_open_files_is_raised_and_one_too_low_is_said, who_is_refused_at_the_agents_socket_fills_no_log,
            with_too_few_open_files_to_start_it_says_so_whatever_it_was_opening, without_memory_for_the_connections_it_says_which_key_to_lower)
