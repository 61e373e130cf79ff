# SPDX-License-Identifier: BSD-3-Clause
"""A wire between this network namespace and another one that loses and delays packets, where the
kernel has no netem: both ends are tunnels, and this process carries what goes into one to the
other.

lossy_wire.py NAMESPACE HERE THERE LOSS DELAY SEED: names of the ends, share of packets that are
lost, mean seconds of delay (each packet's own: packets overtake each other). Says "ready"."""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, TUN_NO_HEADER, CLONE_NEWNET = 0x400454CA, 0x1001, 0x40000000


def open_end(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), TUN_NO_HEADER))
    return fd


def enter(path):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns", path)
    os.close(fd)


def carry(ends, loss, delay, dice):
    other = dict(zip(ends, reversed(ends)))
    due = []  # (when, number, to, packet)
    number = 0
    while True:
        wait = max(0, due[0][0] - time.monotonic()) if due else None
        for fd in select.select(ends, [], [], wait)[0]:
            packet = os.read(fd, 1 << 16)
            if dice.random() >= loss:
                number += 1
                when = time.monotonic() + dice.expovariate(1 / delay)
                heapq.heappush(due, (when, number, other[fd], packet))
        while due and due[0][0] <= time.monotonic():
            _, _, fd, packet = heapq.heappop(due)
            try:
                os.write(fd, packet)
            except OSError:
                pass  # the end is down, or full: one more that is lost


def main():
    namespace, here, there, loss, delay, seed = sys.argv[1:]
    ends = [open_end(here)]
    enter(f"/var/run/netns/{namespace}")
    ends.append(open_end(there))
    print("ready", flush=True)
    carry(ends, float(loss), float(delay), random.Random(int(seed)))


main()
