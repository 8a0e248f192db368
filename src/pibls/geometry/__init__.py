"""Where a problem lives: shapes, their boundaries, and space over time.

A shape is built on coordinates, and knows its points, its boundary with outward normals, and how to integrate:

>>> import sympy as sp
>>> x, y, t = sp.symbols("x y t")
>>> square = Rectangle((x, -1, 1), (y, -1, 1))
>>> square.sample(100).shape
(100, 2)
>>> points, weights = square.quadrature(100)
>>> print(f"{weights @ points[:, 0] ** 2:.12f}")
1.333333333333

Parts of the boundary have names, or are chosen by a condition, and can be joined:

>>> square.left.normals([[-1, 0]])
array([[-1.,  0.]])
>>> walls = square.bottom | square.top
>>> walls.measure
4.0
>>> round(square.boundary.where(lambda X: X[:, 1] > 0).measure, 9)
4.0

Shapes combine by ``|``, ``&`` and ``-``; ``lift`` finds a part again in what was made of its shape:

>>> disk = Disk((x, y), (0, 0), 0.5)
>>> plate = square - disk
>>> hole = plate.lift(disk.boundary)
>>> print(f"{hole.measure / 3.141592653589793:.9f}")
1.000000000

A product with a time interval has the boundary of space at all times, and an initial and a final face:

>>> heated = plate * TimeInterval(t, 0, 10)
>>> heated.lift(disk.boundary).sample(5).points.shape
(5, 3)
>>> heated.initial.sample(5).points[:, 2]
array([0., 0., 0., 0., 0.])
"""

from pibls.geometry.ball import Ball, Disk
from pibls.geometry.base import Domain
from pibls.geometry.boolean import Combination
from pibls.geometry.box import Box, Interval, Rectangle
from pibls.geometry.cloud import PointCloud
from pibls.geometry.implicit import Implicit
from pibls.geometry.outline import Outline, Polygon
from pibls.geometry.part import Part
from pibls.geometry.patch import Samples
from pibls.geometry.points import Points, PointSet
from pibls.geometry.product import Extrusion, Product, TimeInterval
from pibls.geometry.reading import read_shape
from pibls.geometry.regions import per_region
from pibls.geometry.revolution import Revolution
from pibls.geometry.sampling import METHODS, unit_cube
from pibls.geometry.solid import Solid
from pibls.geometry.solids import Cone, Cylinder, Torus
from pibls.geometry.star import Star

__all__ = [
    "METHODS",
    "Ball",
    "Box",
    "Combination",
    "Cone",
    "Cylinder",
    "Disk",
    "Domain",
    "Extrusion",
    "Implicit",
    "Interval",
    "Outline",
    "Part",
    "PointCloud",
    "PointSet",
    "Points",
    "Polygon",
    "Product",
    "Rectangle",
    "Revolution",
    "Samples",
    "Solid",
    "Star",
    "TimeInterval",
    "Torus",
    "read_shape",
    "per_region",
    "unit_cube",
]
