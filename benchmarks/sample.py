"""Some sixty cheap solves of all sets, for everyday use: a set, a problem and a tolerance each, at seed 0."""

SAMPLE = frozenset(
    {
        ("linear", "advection", 1e-6),
        ("linear", "poisson", 1e-6),
        ("ill_posed", "ode_one_condition", 1e-6),
        ("inverse", "heat_diffusivity", 1e-6),
    }
)
