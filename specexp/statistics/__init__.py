"""How sure a number is: moments and their intervals, distances with their noise floor, the ranked losslessness test."""

from specexp.statistics.moments import NONE, Estimate, Moments

__all__ = ["NONE", "Estimate", "Moments"]
