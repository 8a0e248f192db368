"""Shapes from files and from the objects of other libraries.

Every format ends in one of three shapes: an :class:`~pibls.geometry.Outline` (or, for one ring, a
:class:`~pibls.geometry.Polygon`) in the plane, a :class:`~pibls.geometry.Solid` within a triangulated surface, or an
:class:`~pibls.geometry.Implicit` where a function is positive. Files are read within limits, and nothing in them
names other files.
"""

from pibls.geometry.reading.shape import read_shape

__all__ = ["read_shape"]
