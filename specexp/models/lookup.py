"""Prompt lookup: no second model; what followed the last words when they were last said is drafted again."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.errors import UserError
from specexp.models.text import TextTarget
from specexp.models.window import WindowModel
from specexp.rounds import Booleans, Floats, Ints
from specexp.siblings import Scheme
from specexp.values import Range


@dataclass(frozen=True)
class Lookup(WindowModel):
    """All mass on the token that followed the latest earlier occurrence, in the last ``memory`` tokens, of the longest
    of the text's last ``longest``, .., 2, 1 tokens that has one; on the last token itself where none has."""

    vocab: int
    memory: int
    longest: int

    def conditional(self, window: Ints) -> Floats:
        drafted = window[..., -1]
        for length in range(1, min(self.longest, self.memory - 1) + 1):  # a longer match overrules a shorter one
            found, place = _latest(window, length)
            continued = np.take_along_axis(window, (place + length)[..., None], -1)[..., 0]
            drafted = np.where(found, continued, drafted)
        return (np.arange(self.vocab) == drafted[..., None]).astype(np.float64)


def _latest(window: Ints, length: int) -> tuple[Booleans, Ints]:
    """[...] each: whether the last ``length`` tokens occur earlier in ``window`` [..., memory], and where last."""
    places = window.shape[-1] - length  # an occurrence must have a token after it
    same = np.ones((*window.shape[:-1], places), dtype=bool)
    for i in range(length):
        same &= window[..., i : i + places] == window[..., -length + i, None]
    return np.asarray(same.any(-1)), places - 1 - same[..., ::-1].argmax(-1)


@dataclass(frozen=True)
class LookupDraft(Scheme):
    """Prompt lookup (Saxena 2023; n-gram speculation in the engines) over the last ``history`` tokens of the text: a
    one-hot draft that costs next to nothing (``cost.draft_ms=0``). Looked up again at each drafted token, so its law
    depends on the text so far alone, not on where a step began."""

    longest: Annotated[int, Range(1)] = 3
    history: Annotated[int, Range(2, 4096)] = 128

    def model(self, target: TextTarget, vocab: int, seed: int) -> Lookup:
        held_out = len(target.corpus().held_out)
        if self.history > held_out:
            raise UserError(
                f"draft.history={self.history}: streams begin in the text's held-out part of {held_out} tokens; take "
                "a shorter history or a larger target.held_out"
            )
        return Lookup(vocab, self.history, self.longest)
