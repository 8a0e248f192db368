"""Random formulas and problem files against the reader: whatever the text says, it is read or refused, and soon.

    python -m benchmarks.fuzz_text [--count 100000] [--seed 0]

Most texts are formulas, made by a grammar that likes large numbers and deep nesting, or by changing characters of
such; every fiftieth is a problem file with one of them in it, or with changed characters. A text that ends in
anything but an answer or a ``TextError``, takes over a second or makes memory grow is printed in full.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
from collections.abc import Callable

from pibls import parse
from pibls.errors import TextError
from pibls.text import read_text
from pibls.text.vocabulary import FUNCTIONS, OPERATORS

_PATIENCE = 5.0
_NUMBERS = (
    *("0", "1", "2", "3", "7", "10", "-1", "0.5", "1e300", "1e-300", "1e999", "9", "100", "1000", "1/3", "65537"),
    *("123456789", "9" * 59, "9" * 70, "0.1", "3.14", ".5", "5.", "1e-5", "pi", "e"),
)
_NAMES = ("x", "y", "t", "u", "v", "k", "u_x", "u_xx", "u_xy", "v_t", "u_xxxx", "n_x", "q", "u_q", "sin", "theta")
_SMOOTH = ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "cosh", "erf", "abs", "sign", "atan", "gamma", "floor")
_STRANGE = "()[]{}=<>!+-*/^.,:;@#$%&|~'\"\\`?_ \t\n\r\x00\x07\x1b¹²πΔ∂−×ｘабв\u200b\u202e🙂0123456789xyztuvke"
_FILES = (
    """
title = "Heat"
unknowns = ["u"]
equations = ["u_t = k*laplacian(u) + exp(-t)*sin(pi*x)"]
[parameters]
k = 0.1
[domain]
shape = "interval"
x = [0, 1]
[time]
t = [0, "1/2"]
[[conditions]]
kind = "dirichlet"
value = 0
[[conditions]]
kind = "initial"
value = "sin(pi*x)"
""",
    """
unknowns = ["u", "v"]
equations = ["-laplacian(u) + v_x = 1", "-laplacian(v) + u_y = where(x < 0.5, 1, 2)"]
[domain]
shape = "difference"
of = [{shape = "rectangle", x = [-1, 1], y = [-1, 1], name = "plate"}, {shape = "disk", radius = 0.3, name = "hole"}]
[[conditions]]
kind = "robin"
u = "u"
alpha = 2
beta = 1
value = "x*y"
on = "plate.left"
[[conditions]]
kind = "neumann"
u = "v"
value = "n_x"
on = "hole"
[[conditions]]
kind = "dirichlet"
u = "u"
value = '''x
  + y'''
on = "x > 0.9 and y < 0.5"
weight = 2.0
[exact]
u = "x"
v = "y"
[solve]
tol = 1e-4
[output]
plot = "plate.png"
""",
    """
equations = "u_xx + u_yy = 0"
[domain]
shape = "star"
radius = "1 + cos(5*theta)/4"
[[conditions]]
kind = "observation"
points = [[0, 0], [0.1, 0.2]]
values = [1, "sqrt(2)"]
noise = 0.1
[[conditions]]
kind = "mean"
value = 1
[[conditions]]
kind = "condition"
equation = "u + dn(u) = 1"
""",
    """
fields = ["u"]
equations = ["u_t = k*u_xx + f*exp(-(x - s)**2)"]
[unknowns]
k = {start = 0.1, bounds = [0, inf], prior = ["1/3", 0.5]}
s = {}
f = {of = ["x"], smooth = {size = 1, length = 0.2}, start = "1 + x"}
[domain]
shape = "interval"
x = [0, 1]
[time]
t = [0, 1]
[[conditions]]
kind = "observation"
points = [[0, 0.5], [0.1, 0.2]]
values = [1, "sqrt(2)"]
loss = "huber"
[[conditions]]
kind = "observation"
u = "u_x"
over = ["left", {shape = "interval", x = [0, 0.5]}]
times = [0.5, 1]
values = [1, 2]
noise = [0.1, 0.2]
[[conditions]]
kind = "observation"
over = [{shape = "interval", x = [0, 0.5], during = [0, 1]}]
values = 1
[truth]
k = 0.3
f = "sin(x)"
""",
)


def tame(rng: random.Random, depth: int = 5) -> str:
    """Return a random formula that is mostly sensible, so that large ones get through."""
    if depth <= 0 or rng.random() < 0.1:
        return rng.choice(
            ("x", "y", "t", "x", "y", "u", "v", "k", "u_x", "u_xy", "pi", "2", "0.5", "1/3", "7", "x + 1")
        )

    def below() -> str:
        return tame(rng, depth - 1)

    makers: tuple[Callable[[], str], ...] = (
        lambda: rng.choice((" + ", " - ", "*", "/")).join(f"({below()})" for _ in range(rng.randrange(2, 5))),
        lambda: f"({below()})**{rng.choice(('2', '3', '(1/3)', '(-1)', '0.5', 'x'))}",
        lambda: f"{rng.choice(_SMOOTH)}({below()})",
        lambda: f"{rng.choice(('besselj', 'legendre', 'hermite'))}({rng.randrange(12)}, {below()})",
        lambda: f"{rng.choice(('min', 'max', 'atan2', 'heaviside'))}({below()}, {below()})",
        lambda: f"where({below()} < {below()}, {below()}, {below()})",
        lambda: f"laplacian({below()}) + dn({below()})",
        lambda: f"dot(grad({below()} + u), grad({below()} + v))",
        lambda: f"diff({below()}, x, {rng.randrange(1, 4)}, t)",
    )
    return rng.choice(makers)()


def formula(rng: random.Random, depth: int = 5) -> str:
    """Return a random text of the grammar of formulas, not always a sensible one."""
    if depth <= 0 or rng.random() < 0.15:
        return rng.choice(_NUMBERS if rng.random() < 0.45 else _NAMES)

    def below() -> str:
        return formula(rng, depth - 1)

    makers: tuple[Callable[[], str], ...] = (
        lambda: f"{below()} {rng.choice('+-*/')} {below()}",
        lambda: rng.choice((" + ", " - ", "*")).join(below() for _ in range(rng.randrange(2, 8))),
        lambda: f"({below()})**({below()})",
        lambda: f"{below()}**{rng.choice(_NUMBERS)}",
        lambda: f"-({below()})",
        lambda: f"{rng.choice(list(FUNCTIONS))}({below()})",
        lambda: f"{rng.choice(list(FUNCTIONS))}({below()}, {below()})",
        lambda: f"{rng.choice(OPERATORS)}({below()})",
        lambda: f"where({comparison(rng, depth)}, {below()}, {below()})",
        lambda: f"piecewise([{below()}, {comparison(rng, depth)}], {below()})",
        lambda: f"diff({below()}, {rng.choice('xyt')}, {rng.choice(('1', '2', '3', '50', '101', 'x'))})",
        lambda: f"dot(grad({below()}), [{below()}, {below()}])",
        lambda: f"div([{below()}, {below()}])",
        lambda: f"grad({below()})[{rng.choice(('x', 'y', '0', '7'))}]",
        lambda: f"max({below()}, {below()}, {below()})",
        lambda: f"product({rng.choice(_NUMBERS)}, {below()})",
    )
    return rng.choice(makers)()


def comparison(rng: random.Random, depth: int) -> str:
    """Return a random condition."""
    text = f"{formula(rng, depth - 2)} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {formula(rng, depth - 2)}"
    return f"{text} {rng.choice(('and', 'or'))} not ({comparison(rng, depth - 2)})" if rng.random() < 0.2 else text


def mutated(rng: random.Random, text: str) -> str:
    """Return a text with some characters changed, dropped, doubled or moved."""
    characters = list(text)
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(characters) + 1)
        action = rng.randrange(4)
        if action == 0 and characters:
            del characters[place : place + rng.randrange(1, 4)]
        elif action == 1:
            characters.insert(place, rng.choice(_STRANGE))
        elif action == 2:
            characters[place:place] = characters[place : place + rng.randrange(1, 20)] * rng.randrange(1, 4)
        else:
            characters[place:place] = rng.choice(_NUMBERS)
    return "".join(characters)


def equation(rng: random.Random) -> str:
    """Return a random formula or equation, changed in every third case."""
    text = (tame if rng.random() < 0.5 else formula)(rng, rng.randrange(1, 7))
    if rng.random() < 0.5:
        text = f"{text} = {formula(rng, rng.randrange(1, 4))}"
    return mutated(rng, text) if rng.random() < 0.33 else text


def problem_file(rng: random.Random) -> str:
    """Return a random problem file."""
    text = rng.choice(_FILES)
    if rng.random() < 0.6:
        lines = text.splitlines()
        candidates = [i for i, line in enumerate(lines) if "=" in line and not line.startswith(("kind", "shape"))]
        place = rng.choice(candidates)
        lines[place] = (
            f"{lines[place].split('=')[0]}= '{(tame if rng.random() < 0.7 else formula)(rng, rng.randrange(1, 4))}'"
        )
        return "\n".join(lines)
    return mutated(rng, text)


def attempt(text: str, is_file: bool) -> bool:
    """Read a text; return whether it was accepted. Everything but a refusal with a position goes through."""
    try:
        if is_file:
            read_text(text)
        else:
            parse(text, "x y t", "u v", {"k": 0.1})
    except TextError as error:
        if error.line < 1 or error.column < 1 or not error.message:
            raise AssertionError(f"no position in {error}") from error
        return False
    return True


class StuckError(BaseException):
    """A text took far too long; no ``except Exception`` on the way stops it."""


def give_up(*_: object) -> None:
    """Stop reading a text."""
    raise StuckError("stuck")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    signal.signal(signal.SIGVTALRM, give_up)
    faults = accepted = 0
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(options.count):
        is_file = number % 50 == 49
        text = problem_file(rng) if is_file else equation(rng)
        signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE)
        started = time.thread_time()
        try:
            accepted += attempt(text, is_file)
        except (Exception, StuckError) as error:
            faults += 1
            print(f"{type(error).__name__}: {str(error)[:200]} from {text!r}", flush=True)
        seconds = time.thread_time() - started
        slowest = max(slowest, seconds)
        if seconds > 1:
            faults += 1
            print(f"{seconds:.2f} s for {text!r}", flush=True)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{options.count} texts, {accepted} accepted, {faults} faults, slowest {slowest:.2f} s, +{grown:.0f} MB")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
