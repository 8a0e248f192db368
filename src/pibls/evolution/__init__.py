"""TIME as an ordinary differential equation: broad features in space, coefficients that follow a stiff integrator.

``evolve`` solves a problem that way, if it is an evolution: u_t = F(t, x, u, u_x, ...), of any order in time.
"""

from pibls.evolution.cell_evolution import suits_stages, transits
from pibls.evolution.evolve import evolve, suits_lines
from pibls.evolution.form import Evolution, find_evolution
from pibls.evolution.multipliers import Unsuitable
from pibls.evolution.waves import suits_waves

__all__ = [
    "Evolution",
    "Unsuitable",
    "evolve",
    "find_evolution",
    "suits_lines",
    "suits_stages",
    "suits_waves",
    "transits",
]
