"""ROWS: the equation and conditions at points become one scaled least-squares system."""

from pibls.system.assemble import Block, System, assemble, check_linear, check_points_match, check_squares, system_bytes
from pibls.system.scaling import Balanced, Fixed, Penalties, RowScaling
from pibls.system.tangent import Evaluate, check_known, linearised

__all__ = ["Balanced", "Block", "Evaluate", "Fixed", "Penalties", "RowScaling", "System", "assemble", "check_known"]
__all__ += ["check_linear", "check_points_match", "check_squares", "linearised", "system_bytes"]
