"""The gain over ``token``: how many more tokens a step a rule emits from the same contexts and drafts, relatively.

What makes tokens a step vary from one context or draft to the next moves both rules alike, so that the two are paired
unit by unit, and their ratio is known far better than either of them. With several draft paths `token` has the first
to itself, drawn from q.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from specexp.build import Experiment
from specexp.curves import Known, certain, exact_tokens
from specexp.engine import WARM_UP, Players, Step
from specexp.observe import Asides, Walked, acceptance, survival_by_context
from specexp.replay import Replayed, replay
from specexp.rounds import Floats, Local
from specexp.rules.single import Token, ratio
from specexp.sampling import cumulative, taken
from specexp.siblings import greedy, independent
from specexp.statistics import Estimate, Moments
from specexp.target_only import Text, text

ENOUGH = 200  # steps; with fewer, a fitted share makes intervals too narrow


def gain_over_token(experiment: Experiment, walked: Walked, alone: Text | None, again: Replayed | None) -> Known:
    """E[tokens a step of the rule] / E[tokens a step of `token`] - 1, and how it is known. For `token` itself it is 0
    by definition, which is no way to know it."""
    if experiment.players.rule == Token():
        return None, certain(0.0)
    tokens, yardstick = exact_tokens(experiment).value, with_token(experiment)
    if tokens is not None and (of_token := exact_tokens(yardstick).value) is not None:
        return "exact", certain(tokens / of_token - 1)
    if alone is None:
        return "expected", on_the_same_rounds(walked.asides)
    texts = alone if alone.own else text(yardstick.players, experiment.plan)
    return "expected", along_the_texts(experiment, walked, texts, again)


def with_token(experiment: Experiment) -> Experiment:
    """The same experiment with the rule `token`, which takes one path of as many levels as are drafted."""
    players = experiment.players
    pair = replace(players.pair, paths=1, siblings=independent)
    return replace(experiment, gamma=levels(experiment), players=Players(pair, Token(), players.length))


def levels(experiment: Experiment) -> int:
    """How deep a step's drafts are: gamma, or less where a tree ends before."""
    return experiment.work(experiment.gamma).levels


def asides(experiment: Experiment) -> Asides:
    """What the walk keeps for it where contexts are fresh; where they persist, texts are replayed."""
    players = experiment.players
    if players.pair.persistent or players.rule == Token():
        return {}
    short = levels(experiment)
    averaged: Asides = {"token": partial(tokens_of_token, short)}
    if isinstance(players.rule, Local) or not whole_path_of_q(players, experiment.gamma):
        return averaged
    return {**averaged, "token_given_drafts": partial(tokens_given_drafts, short)}


def whole_path_of_q(players: Players, gamma: int) -> bool:
    """Whether the first path is as deep as a step's drafts, and all its tokens are drawn from q: they are the eldest of
    their siblings, which alone of a greedy scheme's are not drawn at all."""
    tree = players.tree(gamma)
    drawn = players.pair.siblings is not greedy or tree.most_siblings < 2
    return drawn and bool((tree.owner[0, : tree.depth] == 0).all())


def tokens_of_token(gamma: int, step: Step) -> Floats:
    """[B]: expected tokens of a step of ``gamma`` drafts under `token`, averaged over the drafts."""
    return 1 + survival_by_context(acceptance(Token(), step), gamma).sum(1)


def tokens_given_drafts(gamma: int, step: Step) -> Floats:
    """[B]: expected tokens of a step under `token`, given the first ``gamma`` drafts of its first path."""
    round, tokens = step.round, step.round.draft_tokens[:, 0, :gamma]
    p, q = (taken(laws[:, 0, :gamma], tokens) for laws in (round.target_probs, round.draft_probs))
    return 1 + cumulative(ratio(p, q), np.multiply).sum(1)


def on_the_same_rounds(units: Moments) -> Estimate:
    """The gain where each step has a context of its own. A rule that is known given the drafts shares the luck of the
    drafts with `token`, whose mean over drafts is known: it is taken off as a control variate, where there are enough
    steps to say how much of it."""
    luck = np.array([0.0, -1.0, 1.0])  # token given the drafts, less its mean over drafts: 0 on average
    if "token_given_drafts" not in units.names or units.count < ENOUGH:
        return units.estimate(lambda means: means["expected"] / means["token"] - 1)
    both = units.select("expected", "token", "token_given_drafts")
    spread = float(luck @ both.scatter @ luck)
    share = float(both.scatter[0] @ luck) / spread if spread > 0 else 0.0
    return both.estimate(
        lambda means: (means["expected"] - share * (means["token_given_drafts"] - means["token"])) / means["token"] - 1
    )


def along_the_texts(experiment: Experiment, walked: Walked, texts: Text, again: Replayed | None) -> Estimate:
    """The gain where contexts persist: both along the same texts of the target; a rule that cannot be replayed, along
    its own walk, request by request."""
    short = levels(experiment)
    of_token = replay(texts.chances, Token(), (short,), warm_up=WARM_UP).units(short)[:, :2]
    if again is not None:
        of_rule = again.units(experiment.gamma)[:, :2]
    else:
        assert walked.units is not None  # contexts persist
        of_rule = walked.units[:, [walked.moments.names.index(name) for name in ("counted", "expected")]]
    units = Moments.of(("steps", "tokens", "token_steps", "token_tokens"), np.hstack([of_rule, of_token]))
    return units.estimate(lambda m: (m["tokens"] / m["steps"]) / (m["token_tokens"] / m["token_steps"]) - 1)
