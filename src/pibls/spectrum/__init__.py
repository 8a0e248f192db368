"""Eigenvalues and eigenfunctions of linear problems, on trees of cells."""

from pibls.spectrum.eigen import Spectrum, eigen

__all__ = ["Spectrum", "eigen"]
