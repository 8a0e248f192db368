"""The studio: a page in the browser on which a problem file is written, drawn, solved and looked at.

The text of the problem file is the state (:mod:`~pibls.studio.session`); cards and the drawing board change it in place
(:mod:`~pibls.studio.text_edits`, :mod:`~pibls.studio.shape_edits`). Everything mathematical is done by worker processes
(:mod:`~pibls.studio.worker`), so that the page answers whatever is typed into it.
"""
