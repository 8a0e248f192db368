"""A hundred well-posed problems by someone who did not know how they are solved, in two halves divided by chance."""

from __future__ import annotations

from benchmarks.sets.posing import halves
from benchmarks.sets.strangers_fields import fields
from benchmarks.sets.strangers_lines import lines
from benchmarks.sets.strangers_planes import planes
from benchmarks.sets.strangers_space import space
from benchmarks.sets.strangers_times import times

strangers, strangers_aside = halves(lines, planes, fields, space, times)
