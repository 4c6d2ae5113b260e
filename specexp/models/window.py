"""Models whose law depends on a bounded number of last tokens: fixed (0), bigram (1), n-gram (order - 1).

A member writes ``conditional(window)``; streams, branches and commits follow from it, and because the window IS the
context, such a model can be tabulated where vocab ** memory is small, and a draft's noise can be a function of it.
"""

from abc import ABC, abstractmethod

import numpy as np

from specexp.rounds import Floats, Ints, RandomStreams


class WindowModel(ABC):
    """A model of finite memory; its state is the last ``memory`` tokens of each stream, [B, memory]."""

    persistent = True
    constant = False
    vocab: int
    memory: int

    @abstractmethod
    def conditional(self, window: Ints) -> Floats:
        """[..., V]: the law after the last ``memory`` tokens ``window`` [..., memory]."""

    def start(self, prompts: Ints, random: RandomStreams) -> Ints:
        """[B, memory]: the end of each prompt. Raises ValueError where a prompt is shorter than the memory."""
        if prompts.shape[1] < self.memory:
            raise ValueError(f"prompts of {prompts.shape[1]} tokens for a memory of {self.memory}")
        return prompts[:, prompts.shape[1] - self.memory :]

    def windows(self, state: Ints, tokens: Ints) -> Ints:
        """[B, K, n+1, memory]: the context before each of ``tokens`` [B, K, n] and after the last."""
        streams, paths, n = tokens.shape
        history = np.broadcast_to(state[:, None, :], (streams, paths, self.memory))
        if n == 0:
            return history[:, :, None]
        text = np.concatenate([history, tokens], axis=-1)
        return np.stack([text[..., i : i + self.memory] for i in range(n + 1)], axis=2)

    def law(self, state: Ints, tokens: Ints) -> Floats:
        """[B, K, V]: the law after ``tokens`` [B, K, n]."""
        return self.conditional(self.window(state, tokens))

    def laws(self, state: Ints, tokens: Ints) -> Floats:
        """[B, K, n+1, V]: the law before each of ``tokens`` [B, K, n] and after the last."""
        return self.conditional(self.windows(state, tokens))

    def window(self, state: Ints, tokens: Ints) -> Ints:
        """[B, K, memory]: the context after ``tokens`` [B, K, n]."""
        recent = tokens[..., max(0, tokens.shape[2] - self.memory) :]
        old = state[:, None, min(recent.shape[2], self.memory) :]
        return np.concatenate([np.broadcast_to(old, (*tokens.shape[:2], old.shape[-1])), recent], axis=-1)

    def advance(self, state: Ints, tokens: Ints, lengths: Ints) -> Ints:
        """The state after each row's first ``lengths`` [B] of ``tokens`` [B, n]."""
        text = np.concatenate([state, tokens], axis=1)
        return np.take_along_axis(text, lengths[:, None] + np.arange(self.memory), axis=1)
