"""Problems that are ill-posed, and well-posed ones that look alike, each in two halves divided by chance."""

from __future__ import annotations

from benchmarks.sets.forgotten_fields import forgotten_fields
from benchmarks.sets.forgotten_lines import forgotten_lines
from benchmarks.sets.lookalikes_lines import lookalikes_lines
from benchmarks.sets.lookalikes_planes import lookalikes_planes
from benchmarks.sets.posing import halves

forgotten, forgotten_aside = halves(forgotten_lines, forgotten_fields)
lookalikes, lookalikes_aside = halves(lookalikes_lines, lookalikes_planes)
