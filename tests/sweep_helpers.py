"""Functions of problems that a sweep solves in other processes, which import them from here."""

import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np
import sympy as sp

import pibls as pb


def rod():
    """Return u with −k u″ = load on a rod, held at both ends: u(1/2) = load/(8k)."""
    x, k, load = pb.coordinates("x"), pb.parameter("k"), pb.parameter("load")
    u = pb.field("u", x)
    return pb.Problem(sp.Eq(-k * u.diff(x, 2), load), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])


def deadly(x):
    """Return ones; end the process if it is one of a sweep."""
    if multiprocessing.parent_process() is not None:
        os._exit(3)
    return np.ones_like(x)


if __name__ == "__main__":  # a sweep to be killed: it is slow, so that there is a moment for that
    pb.sweep(rod(), k=range(1, 9), load=[1], executor=1, folder=sys.argv[1], progress=lambda _: time.sleep(0.3))
    Path(sys.argv[1], "finished").touch()
