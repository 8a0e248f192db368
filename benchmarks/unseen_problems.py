"""Problems as an examiner would set them: other equations, shapes, units and ways of writing than those in use.

None of them took part in any choice, and none may: they are there to be measured. Each is ill-posed, or has a closed
form, a series, or a reference by SciPy, of which ``tests/test_unseen.py`` makes sure that it fulfils what is posed.
"""

from __future__ import annotations

from benchmarks.unseen_courses import courses
from benchmarks.unseen_doubts import doubts
from benchmarks.unseen_fields import fields
from benchmarks.unseen_media import media
from benchmarks.unseen_shapes import shapes

unseen = {**shapes, **media, **courses, **fields, **doubts}
