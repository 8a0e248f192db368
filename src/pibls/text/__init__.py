"""Problems as text: formulas read without running anything, problem files, and problems written as such.

``u_xx`` is a derivative, ``laplacian(u)`` an operator, ``1/3`` a fraction; everything else is as in Python:

>>> from pibls.text import parse
>>> parse("-laplacian(u) = 2*pi**2*sin(pi*x)*sin(pi*y)", "x y")
Eq(-laplacian(u(x, y)), 2*pi**2*sin(pi*x)*sin(pi*y))

A problem file says a whole problem in TOML, and a problem can be written as one:

>>> from pibls import problems
>>> file = read_text(problems.poisson().to_text(title="First steps"))
>>> file.title, file.problem.equations == problems.poisson().equations
('First steps', True)

On the way a text passes :mod:`~pibls.text.scan` (characters, brackets, lengths), Python's parser,
:mod:`~pibls.text.expressions` (what may stand in the tree) and :mod:`~pibls.text.arithmetic` (limits on numbers and
sizes, before SymPy sees them). ``schema.json`` beside this file describes problem files to editors.
"""

from pibls.text.formulas import parse
from pibls.text.problem_files import Outputs, ProblemFile, SolveOptions, read_file, read_problem, read_text
from pibls.text.writer import to_text

__all__ = ["Outputs", "ProblemFile", "SolveOptions", "parse", "read_file", "read_problem", "read_text", "to_text"]
