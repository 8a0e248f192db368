"""What the report says in words: where the paper's text is wrong or silent, and what was done instead."""

from __future__ import annotations

__all__ = ["ERRATA", "NOTES", "PROSE"]

# (subject, what is printed, why it cannot be meant, what was done)
ERRATA: tuple[tuple[str, str, str, str], ...] = (
    (
        "Output weights",
        "(HᵀH+λI)⁻¹HᵀZ for N ≤ M, Hᵀ(HHᵀ+λI)⁻¹HᵀZ for N > M",
        "The two cases are exchanged, and the second product has one Hᵀ too many for its shapes.",
        "Both forms give the same ridge solution once corrected. Forming HᵀH squares a condition number that is often "
        "near 10¹⁶, so that the searches, and every fit without a ridge, solve the least-squares problem itself. Where "
        "the paper has a ridge (Poisson), the selected model is fitted by the corrected closed form: a ridge of 10⁻⁴ "
        "leaves it the digits that the errors in the tables have, in a fraction of the time.",
    ),
    (
        "Diffusion–reaction rows",
        "u_t − μ u_x",
        "The equation has a second derivative in space.",
        "u_t − μ u_xx.",
    ),
    (
        "Diffusion–reaction source",
        "… 8/3 sin 3x · 15/4 sin 4x …",
        "The stated solution satisfies the equation only with a plus sign between the two terms.",
        "R = e⁻ᵗ (3/2 sin 2x + 8/3 sin 3x + 15/4 sin 4x + 63/8 sin 8x).",
    ),
    (
        "Poisson solution",
        "2⁴ᵃ xᵃ(1−x)ᵃ yᵃ(1−yᵃ), a not given",
        "It is not symmetric in y. The source it is taken from has (1−y)ᵃ, and a = 10.",
        "2⁴ᵃ xᵃ(1−x)ᵃ yᵃ(1−y)ᵃ with a = 10 on the unit square: the first reading, table 7b.",
    ),
    (
        "Poisson table",
        "errors on “an irregular domain in polar coordinates”",
        "The ratios of absolute to relative errors give a largest |u| of 1.500, a mean |u| of 1.181 and a mean u² of "
        "1.489. The printed solution has maximum 1; e^{−(2x²+4y²)} + ½, of the other source cited, has maximum 1.5.",
        "A second reading, table 7a: that solution on the star r(θ) = 0.48 (1 + 0.25 cos 5θ). The curve is not "
        "printed; this one has a mean of 1.198 and a mean square of 1.468.",
    ),
    ("Poisson rows", "u_xx + u_yy in one line, −(u_xx + u_yy) in the next", "A sign.", "−(u_xx + u_yy)."),
    (
        "Order of columns",
        "H_b = [E F], but G = [F E]",
        "One weight vector belongs to one order.",
        "Feature nodes first, then enhancement nodes, everywhere.",
    ),
    (
        "PINN loss",
        "the boundary loss appears twice",
        "The third term can only be the loss of the initial condition.",
        "Equation + boundary + initial condition.",
    ),
    (
        "Notation",
        "N_c for feature groups and for collocation points",
        "Two meanings of one letter.",
        "N_c counts groups, N_u collocation points.",
    ),
    (
        "PINN parameters, advection",
        "34405 and 21165 for 5 to 25 points",
        "These are counts for two inputs; the equation has one. With one input the widths 183 and 143 give 34222 and "
        "21022; only the row for 30 points, 42022, uses the right formula.",
        "The parameters that the fitted model has.",
    ),
    (
        "Training times",
        "reduced by 46.3 % (Poisson) and 24.0 % (diffusion–reaction) in the conclusion",
        "The table says 7.77 s and 7.22 s, which is 7.1 %, and 6.45 s and 4.98 s, which is 22.8 %.",
        "Measured times only.",
    ),
    (
        "Stability and sensitivity",
        "bounds with ‖H‖/λ",
        "True, and loose: max σ/(σ²+λ) over the singular values is exact, and never above 1/(2√λ).",
        "Both bounds are reported.",
    ),
    (
        "PI-ELM and B-PI-ELM on advection",
        "relative errors 0.61 and 1.00",
        "An error of exactly 1 is the zero function. One hidden layer of random nodes and a least-squares solve does "
        "far better on this smooth problem.",
        "Each baseline is built as well as we can and searched over its own settings; where it beats the paper's "
        "figure for it, or PI-BLS, the tables say so.",
    ),
    (
        "Random weights",
        "distribution and range are not stated",
        "They decide the accuracy more than any setting that is searched.",
        "They are written with the search spaces below tables 2 to 4.",
    ),
    (
        "Cross-validation",
        "“validation RMSE”",
        "An RMSE needs the exact solution, which nobody has who needs a solver.",
        "Both: by the exact solution, as the paper does, and by the residual at held-out points, beside it.",
    ),
)

NOTES = {
    "6": "The published figures of PI-ELM (0.61) and B-PI-ELM (exactly 1.00, the error of the zero function) are no "
    "measure of these methods; see the notes on the paper.",
    "7a": "The problem whose numbers the paper's table shows: its ratios give max |u| = 1.500, which is that of this "
    "solution. The domain's curve is not printed; the star here is the five-petal one whose averages come nearest.",
    "7b": "The problem that the paper's text states. Its maximum is 1, so the published table cannot be about it: the "
    "published numbers are shown for comparison, and the verdicts hold them against another problem.",
    "8": "With the corrected source and second derivative; with either as printed, the stated solution does not "
    "satisfy the equation. PI-ELM has no ridge in its search space, and its widest network has 203 weights for the 200 "
    "rows of the fit, the least stable ratio there is; cross-validation, with 160 rows, does not see it.",
    "9": "The paper's times come from another machine (Xeon Platinum 8260, RTX A4500), so its seconds and ours "
    "differ by more than the methods do; the ratios within one machine are what can be compared. The conclusion's "
    "46.3 % for Poisson does not follow from the paper's own table (7.1 %).",
    "10": "For advection with 5 to 25 points the published PINN counts are those of a network with two inputs. The "
    "quick profile trains PINNs of one small width, so that only the full profile has counts for them.",
}

PROSE: dict[str, tuple[str, ...]] = {
    "protocol": (
        "Every method gets the same random training points inside the domain. Its settings are chosen by 5-fold "
        "cross-validation over the whole search space, the model is fitted again to all training points, and its "
        "errors are taken at an independent set of test points (100 for advection, 10 000 otherwise). One seed draws "
        "points, folds and random nodes; medians and extremes below are over seeds.",
        "The paper does not say how many points carry the conditions. Here they are spread evenly, the same for all "
        "methods: one end for advection, twice as many on the boundary as inside for Poisson, because the smallest "
        "ridge of the paper is felt less the more rows there are, and half as many on the boundary and half as many "
        "at the first time for diffusion–reaction.",
        "Figures 1 to 3 of the paper are drawings of architectures and have nothing to measure.",
    ),
    "times": (
        "Seconds of one fit with the configuration that the search selected, on this machine; the search itself is "
        "not counted, as in the paper. The second table holds time and error of the same fits together: where the "
        "error of the PINN is the larger one, its training would take longer still to come as far.",
    ),
    "residual": (
        "The paper chooses settings by the error against the exact solution, which is what a solver is to find. The "
        "same search can look at the residual of the equation and its conditions at the held-out points instead, "
        "which needs no solution.",
    ),
    "theorems": (
        "Stability and sensitivity say something only where there is a ridge; models without one are not counted "
        "there. The residual theorem, that no weights have a lower objective than the minimiser, is checked at "
        "w = 0. Physics consistency as printed says that no residual is left where the objective is zero, which it "
        "never is in floating point; its quantified form bounds the largest residual. The printed constants ‖H‖/λ "
        "are true but loose: the sharp ones are never above 1/(2√λ).",
    ),
    "beyond": (
        "The same problems given to <code>pb.solve(problem)</code> with nothing else said: it chooses points, scales "
        "and width itself, without looking at the exact solution, and estimates its own error. The difference to the "
        "tables above is what more, well-chosen points and scales are worth.",
    ),
    "errata": (
        "The method of the paper is sound; its text has slips. Each row says what is printed, why it cannot be meant, "
        "and what was done here.",
    ),
    "files": (
        "Next to this page: <code>csv/</code> with every number (<code>comparison.csv</code> holds each published "
        "number with its measured median, worst, best and verdict; <code>errors.csv</code>, "
        "<code>settings.csv</code>, <code>theorems.csv</code> every single run; <code>curves.csv</code> the values "
        "behind the maps; <code>coverage.csv</code> every repetition with noise; <code>times.csv</code>, "
        "<code>seconds.csv</code> and <code>growth.csv</code> what depends on the clock), "
        "<code>figures/</code> with every figure as PNG and PDF, and <code>cells/</code> with the stored results.",
    ),
}
