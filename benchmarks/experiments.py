"""Experiments by the words of the command line, without its folders and tables."""

from hydra import compose, initialize_config_dir

from specexp.app.cells import plain
from specexp.app.configs import conf_dir
from specexp.build import Experiment, experiment


def composed(*words: str) -> Experiment:
    """The experiment that ``python -m specexp WORDS`` would run."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return experiment(plain(compose("config", list(words))))
