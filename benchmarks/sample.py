"""Some cheap solves of all sets and kinds, for everyday use: each at the first tolerance and seed of its problem."""

SAMPLE = {
    "linear": (
        *("advection", "annulus", "beam", "boundary_layer", "diffusion_reaction", "heat_robin", "helmholtz", "l_shape"),
        *("neumann_gauge", "poisson_nd", "poisson_star", "stokes", "variable_coefficient", "wave"),
    ),
    "nonlinear": ("bratu_1d", "burgers_steady", "cubic_reaction", "kovasznay", "minimal_surface"),
    "evolution": (
        *("advection_long", "burgers", "fisher_kpp", "kdv", "lotka_volterra", "taylor_green walls", "van_der_pol"),
    ),
    "everyday": (
        *("cantilever", "contact_layer", "dose", "hot_lid", "motz", "narrow_source", "thin_absorber"),
        *("two_materials", "well"),
    ),
    "held_out": (
        *("hollow_inclusion", "hot_side_meets_cold", "insulated_corner", "kicked_spring", "outflow_layer"),
        *("radiating_fin", "resonant_membrane", "suddenly_heated_end", "pressure_vessel"),
    ),
    "ill_posed": (
        *("contradictory_dirichlet", "heat_backward", "laplace_three_sides", "ode_one_condition"),
        "stokes_without_gauge",
    ),
    "inverse": (
        *("burgers_coefficients", "heat_diffusivity", "one_layer", "product", "rate_function, noise 0"),
        *("two_layer_darcy, noise 0", "window oscillation"),
    ),
    "unseen": (
        *("beyond_ignition", "blunt_inward_corner", "cooling_slab", "microelectrode", "ring_of_two_metals"),
        *("said_three_times", "stepped_beam", "two_thermometers", "wire_over_ground"),
    ),
    "bodies": ("discs",),
    "families": ("corner 3/2 π", "layer 1e-2", "peak 1e3"),
    "words": ("beam_three_of_four", "channel_with_an_open_end", "l_shape_without_an_edge", "trace_beside_a_stream"),
    "scales": ("huge_values", "wind_against_a_wall"),
    "scales_aside": ("two_metals_that_cool", "planet"),
    "doubts": ("root_of_a_parabola", "string_in_resonance"),
    "doubts_aside": ("tank_that_fills", "beam_that_falls"),
    "many_coordinates": ("heat_in_a_ball_of_six", "uneven_diffusion"),
    "many_coordinates_aside": ("oscillator_in_six_dimensions",),
    "fresh": ("five_layers", "half_disk_mixed", "hares_and_lynxes", "string_without_velocity", "swinging_beam"),
    "strangers": ("electron_on_a_slope", "mass_of_a_plume", "parachute"),
    "strangers_aside": ("liquid_metal_in_a_magnet", "tubular_reactor"),
    "slight": ("squares_in_debt", "whistle_on_a_string"),
    "forgotten": ("clock_that_is_late", "ruler_that_tips"),
    "forgotten_aside": ("inventory_that_is_off", "ring_in_step"),
    "lookalikes": ("growth_by_millions", "started_in_the_middle"),
    "lookalikes_aside": ("ring_beside_its_step", "ruler_that_floats"),
}
