"""Gives PyTorch its best: each measurement with both ways in which its threads can wait.

OpenMP's threads spin at barriers ("active"), which is fast on idle cores and a hundred times slower
as soon as another process wants one of them; sleeping ("passive") costs little on idle cores. The
choice is read when the library is loaded, so each one needs a process of its own.
"""

import json
import os
import subprocess
import sys

CHILD = "UPER_PEERS_CHILD"


def is_child():
    return CHILD in os.environ


def faster_of_both(speed):
    """Runs this very script with each policy; the peer with the larger speed(peer)."""
    peers = []
    for policy in ("passive", "active"):
        environment = {**os.environ, "OMP_WAIT_POLICY": policy, CHILD: "1"}
        result = subprocess.run([sys.executable, *sys.argv], env=environment,
                                stdout=subprocess.PIPE, text=True, check=True)
        [peer] = json.loads(result.stdout)
        peers.append({**peer, "name": f"{peer['name']}, {policy} wait"})
    return max(peers, key=speed)
