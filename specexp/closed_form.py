"""The formula that the papers quote, and what it assumes: every position kept with chance alpha, independently."""

import numpy as np


def closed_form(alpha: float, gamma: int) -> float:
    """E[tokens a step] = 1 + alpha + .. + alpha^gamma = (1 - alpha^(gamma+1)) / (1 - alpha), as a sum, so that it is
    right at alpha = 1 (Leviathan et al. 2022, equation 1)."""
    return float(np.sum(alpha ** np.arange(gamma + 1)))
