"""ROWS: the equation and conditions at points become one scaled least-squares system."""

from pibls.system.assemble import assemble, check_linear, check_points_match, system_bytes
from pibls.system.blocks import Block, System
from pibls.system.scaling import Balanced, Penalties, RowScaling

__all__ = [
    "Balanced",
    "Block",
    "Penalties",
    "RowScaling",
    "System",
    "assemble",
    "check_linear",
    "check_points_match",
    "system_bytes",
]
