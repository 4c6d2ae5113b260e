"""A text made ready for a language model: cut into tokens, numbered, its end held out.

The level says what a token is. *byte*: the byte's value, V = 256, every text can be written. *character*: the distinct
characters of the training part. *word*: a word or a punctuation mark together with the space before it, or any other
white space, so that tokens joined are the text again; words seen once in training, or beyond the ``MOST_WORDS`` most
frequent, are <unk>, which so has a probability that was learnt. The vocabulary comes from the training part alone.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specexp.errors import UserError
from specexp.rounds import Ints

SHIPPED = "hamlet_macbeth.txt"
UNKNOWN = "<unk>"  # never a token of a text: it is longer than a character, and WORD cuts it in three
WORD = re.compile(r" ?\w+(?:['’]\w+)*| ?[^\w\s]|\s")
MOST_WORDS = 8192  # laws are dense rows of V numbers


class Level(NamedTuple):
    """What a token is: ``split`` cuts the text, ``symbols`` names the vocabulary, given the training tokens."""

    encoding: str  # of a token; latin-1 has one character a byte
    split: Callable[[str], list[str]]
    symbols: Callable[[list[str]], list[str]]


def _every_byte(train: list[str]) -> list[str]:
    return [chr(byte) for byte in range(256)]


def _characters(train: list[str]) -> list[str]:
    return [*sorted(set(train)), UNKNOWN]


def _frequent_words(train: list[str]) -> list[str]:
    counts = Counter(train)
    frequent = sorted((word for word, count in counts.items() if count > 1), key=lambda word: (-counts[word], word))
    return [*frequent[: MOST_WORDS - 1], UNKNOWN]


LEVELS = {
    "byte": Level("latin-1", list, _every_byte),
    "character": Level("utf-8", list, _characters),
    "word": Level("utf-8", WORD.findall, _frequent_words),
}


@dataclass(frozen=True)
class Corpus:
    """A tokenised text. Two are equal, and share their fitted models, if bytes, level and split are the same."""

    sha256: str  # of the file
    level: str
    held_out_fraction: float
    source: str = field(compare=False)  # the file's name, without its folder
    symbols: tuple[str, ...] = field(compare=False, repr=False)  # id -> token
    train: Ints = field(compare=False, repr=False)
    held_out: Ints = field(compare=False, repr=False)  # the text's end
    held_out_bytes: int = field(compare=False)  # of the held-out part as it was written, before <unk>

    @property
    def vocab(self) -> int:
        return len(self.symbols)

    def decode(self, ids: Ints) -> str:
        """The text of token ids [n]; bytes that are no UTF-8 (a drawn or cut character) are shown as U+FFFD."""
        encoding = LEVELS[self.level].encoding
        return "".join(self.symbols[token] for token in ids).encode(encoding).decode("utf-8", "replace")


def read(path: str | None, level: str = "byte", held_out: float = 0.1) -> Corpus:
    """The corpus of a UTF-8 file (None: the shipped plays), of which the last ``held_out`` of the tokens are held out.

    Read again at each call, tokenised once a process. Raises UserError, naming ``target.path``, ``target.level`` or
    ``target.held_out``, where the file cannot be read, is not UTF-8 or is too short to be split.
    """
    if level not in LEVELS:
        raise UserError(f"target.level={level}: no such level; one of {', '.join(LEVELS)}")
    if not 0 < held_out < 1:
        raise UserError(f"target.held_out={held_out}: not a fraction of the text; give a number between 0 and 1")
    return _tokenised(_contents(path), path, level, held_out)


def _contents(path: str | None) -> bytes:
    if path is None:
        return files("specexp").joinpath("data", SHIPPED).read_bytes()
    file = Path(path).expanduser()
    try:
        if not file.exists() or file.is_file():  # not a folder, nor a pipe that never ends
            return file.read_bytes()
        reason = "it is no file"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = str(getattr(error, "strerror", None) or error)
    raise UserError(f"target.path={path}: cannot be read ({reason}); give a UTF-8 text file")


@lru_cache(maxsize=8)
def _tokenised(contents: bytes, path: str | None, level: str, held_out: float) -> Corpus:
    encoding, split, vocabulary = LEVELS[level]
    try:
        contents.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"target.path={path}: byte {error.start} is not UTF-8; give a UTF-8 text file") from error
    tokens = split(contents.decode(encoding))
    cut = _cut(len(tokens), path, held_out)
    symbols = vocabulary(tokens[:cut])
    number = {symbol: i for i, symbol in enumerate(symbols)}
    ids = np.array([number.get(token, len(symbols) - 1) for token in tokens], dtype=np.int64)
    ids.flags.writeable = False  # one corpus serves every caller of the process
    return Corpus(
        sha256=hashlib.sha256(contents).hexdigest(),
        level=level,
        held_out_fraction=held_out,
        source=SHIPPED if path is None else Path(path).name,
        symbols=tuple(symbols),
        train=ids[:cut],
        held_out=ids[cut:],
        held_out_bytes=len("".join(tokens[cut:]).encode(encoding)),
    )


def _cut(tokens: int, path: str | None, held_out: float) -> int:
    """How many of a text's tokens are to be learnt from."""
    cut = tokens - round(held_out * tokens)
    if not 0 < cut < tokens:
        raise UserError(
            f"target.path={path}: {tokens} tokens are too few to hold out target.held_out={held_out:g} of them; "
            "give a longer text"
        )
    return cut
