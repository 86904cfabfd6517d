# SPDX-License-Identifier: Apache-2.0
"""A small real HTTP server for the load tester: the path says how it answers. GET /log tells what came."""
import asyncio
import json
import sys
import time

log = []
connections = {"now": 0, "most": 0, "ever": 0}


async def answer(path, number, writer):
    """Returns whether the connection goes on."""
    request_id = b"X-Tailor-Request-Id: %d\r\n" % number
    name, _, argument = path.partition("?")
    if name == "/slow":
        await asyncio.sleep(int(argument) / 1000)
    elif name == "/slow-once" and number == int(argument):
        await asyncio.sleep(0.3)
    elif name == "/never":
        await asyncio.sleep(3600)
    if name == "/hang-up":
        return False
    elif name == "/bad":
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbad")
    elif name == "/status":
        writer.write(b"HTTP/1.1 %s Some Reason\r\nContent-Length: 2\r\n\r\nok" % argument.encode())
    elif name == "/echo":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(argument), argument.encode()))
    elif name == "/changing":
        # Another body, of the same length, to every so manieth request.
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"no" if number % int(argument) == 0 else b"ok"))
    elif name == "/moved":
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
    elif name == "/chunked":
        for part in (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r", b"\nhello\r\n", b"3;x=y\r\nyou\r\n0\r\n", b"T: x\r\n\r\n"):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.002)
    elif name == "/until-close":
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 50000)
        return False
    elif name == "/closing":
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        return False
    elif name == "/interim":
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    elif name == "/no-content":
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    elif name == "/head":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    elif name == "/big":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(1000000))
    elif name == "/cut":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        return False
    elif name == "/garbage":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok")
        return False
    else:
        writer.write(b"HTTP/1.1 200 OK\r\n" + request_id + b"Content-Length: 2\r\n\r\nok")
    await writer.drain()
    return True


async def serve(reader, writer):
    counted = 0  # from 1 on; one that only reads the log is not
    try:
        goes_on = True
        while goes_on:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            now = time.monotonic()
            line, *fields = head.rstrip("\r\n").split("\r\n")
            method, path, _ = line.split(" ")
            length = [int(field.split(":")[1]) for field in fields if field.lower().startswith("content-length:")]
            body = (await reader.readexactly(length[0])).decode("latin-1") if length else ""
            if path == "/log":
                text = json.dumps({"requests": log, "most_connections": connections["most"]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
                continue
            if not counted:
                connections["ever"] += 1
                counted = connections["ever"]
                connections["now"] += 1
                connections["most"] = max(connections["most"], connections["now"])
            log.append({"at": now, "connection": counted, "method": method, "path": path, "fields": fields, "body": body})
            goes_on = await answer(path, len(log), writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        connections["now"] -= counted > 0
        writer.close()


async def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
