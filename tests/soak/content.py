# SPDX-License-Identifier: Apache-2.0
"""What servers answer and clients expect: it depends on the request alone, so that either server's answer is right and a mixture is not."""
import hashlib


def answer_to(path, body_digest):
    """The body of the response to /NUMBER/SIZE/STYLE/DELAY: SIZE bytes made of the path, then what the server read of the request's body."""
    size = int(path.split("/")[2])
    block = hashlib.sha256(path.encode()).digest()
    return (block * (size // len(block) + 1))[:size] + body_digest
