"""specexp: an experiment-tracking research pipeline for speculative decoding."""

__version__ = "0.1.0"
