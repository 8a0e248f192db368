"""Whether a problem is well posed: whether it has one solution, and whether its data determine it.

`counting` counts conditions, `surplus` finds those beyond, `compatibility` integrates sources and fluxes,
`contradiction` finds statements that cannot hold together, `sensitivity` finds changes of a solution that nothing sees,
`uniqueness` levels and motions among them, `stability` waves that grow without bound. Each says what is wrong in a
sentence with the number that shows it.
"""
