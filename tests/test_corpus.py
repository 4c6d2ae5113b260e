import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from specexp.errors import UserError
from specexp.models import corpus
from specexp.models.corpus import LEVELS, MOST_WORDS, UNKNOWN, read

PLAY = "Elsinore. A platform.\nFRANCISCO. Who’s there?\nBERNARDO. Nay, answer me: don't stand,  unfold thyself.\n" * 4
SHIPPED_SHA256 = "2745f5f772343face143f1f760fc08fc2125333338c2ee767785796ceb435073"


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "play.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_the_shipped_plays_are_the_ones_that_the_readme_names() -> None:
    plays = read(None)
    assert plays.sha256 == SHIPPED_SHA256
    assert (plays.vocab, plays.level, plays.source) == (256, "byte", "hamlet_macbeth.txt")
    assert len(plays.train) + len(plays.held_out) == 277_370
    assert plays.decode(plays.train[:25]) == "HAMLET, PRINCE OF DENMARK"


@pytest.mark.parametrize("level", LEVELS)
def test_train_and_held_out_joined_are_the_text_again(tmp_path: Path, level: str) -> None:
    text = PLAY * 2 + "¡Señor!\r\n\tΩ 𝄞 e\u0301 ﬁn_2 3.14 \u00a0 \x00" + PLAY * 2  # odd characters stand in training
    found = read(written(tmp_path, text), level)
    decoded = found.decode(np.concatenate([found.train, found.held_out]))
    words = LEVELS["word"].split(text)
    rare = {word for word in words if words.count(word) == 1} if level == "word" else set()
    assert decoded == "".join(UNKNOWN if word in rare else word for word in words)
    spelt = [found.symbols[token].encode(LEVELS[level].encoding) for token in found.held_out]
    assert found.held_out_bytes == len(b"".join(spelt))


def test_byte_ids_are_byte_values_and_a_cut_character_is_shown_as_such(tmp_path: Path) -> None:
    found = read(written(tmp_path, "añ" * 5), "byte", 0.2)
    assert [*found.train, *found.held_out] == list("añ".encode() * 5)
    assert found.decode(np.array([97, 0xC3])) == "a\ufffd"


def test_characters_are_sorted_and_the_unseen_one_is_unknown(tmp_path: Path) -> None:
    found = read(written(tmp_path, "banana bananaZ"), "character", 0.1)
    assert found.symbols == (" ", "a", "b", "n", UNKNOWN)
    assert found.held_out.tolist() == [4]
    assert found.held_out_bytes == 1  # of "Z", not of the mark


def test_words_keep_their_space_and_the_rare_are_unknown_in_training_too(tmp_path: Path) -> None:
    found = read(written(tmp_path, "to be, or not to be: don't to be\nbe"), "word", 0.08)
    assert found.symbols == (" be", " to", UNKNOWN)  # by frequency, then by spelling
    assert found.decode(found.train).count(UNKNOWN) == 7
    assert LEVELS["word"].split("don't  o’er (ay) 1.5") == ["don't", " ", " o’er", " (", "ay", ")", " 1", ".", "5"]


def test_the_words_beyond_the_cap_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f" w{i}" for i in range(MOST_WORDS + 100)) * 2
    found = read(written(tmp_path, text), "word", 0.001)
    assert found.vocab == MOST_WORDS
    assert 0 < np.mean(found.train == MOST_WORDS - 1) < 0.02
    monkeypatch.setattr(corpus, "MOST_WORDS", 5)
    assert read(written(tmp_path, text + " w1"), "word", 0.001).vocab == 5


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_held_out_never_shows_in_training(tmp_path: Path, level: str) -> None:
    """The letters of the text's end become q, which training never saw; then (the control) those of its beginning."""
    text = PLAY * 5
    first, last = re.sub("[a-zA-Z]", "q", text[:100]), re.sub("[a-zA-Z]", "q", text[-100:])
    known = read(written(tmp_path, text), level)
    end_changed = read(written(tmp_path, text[:-100] + last), level)
    assert end_changed.symbols == known.symbols
    assert np.array_equal(end_changed.train, known.train)
    assert not np.array_equal(end_changed.held_out, known.held_out)
    start_changed = read(written(tmp_path, first + text[100:]), level)
    assert not np.array_equal(start_changed.train, known.train)


def test_a_corpus_is_tokenised_once_and_again_when_the_file_changes(tmp_path: Path) -> None:
    path = written(tmp_path, PLAY)
    first = read(path)
    assert read(path) is first
    assert read(path, held_out=0.2) != first
    assert read(path, "character") != first
    written(tmp_path, PLAY + "x")
    assert read(path) != first
    assert read(path).sha256 == hashlib.sha256((PLAY + "x").encode()).hexdigest()


def test_two_files_of_the_same_bytes_are_one_corpus(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = read(written(tmp_path, PLAY)), read(written(tmp_path / "other", PLAY))
    assert first == second
    assert hash(first) == hash(second)


def test_nobody_can_write_into_the_shared_tokens() -> None:
    with pytest.raises(ValueError, match="read-only"):
        read(None).train[0] = 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (b"caf\xe9 au lait", r"byte 3 is not UTF-8; give"),
        (b"", r"0 tokens are too few"),
        (b"a", r"1 tokens are too few"),
    ],
)
def test_a_text_that_will_not_do_says_why(tmp_path: Path, contents: bytes, told: str, level: str) -> None:
    path = written(tmp_path, contents)
    with pytest.raises(UserError, match=f"^target.path={path}: {told}"):
        read(path, level)


@pytest.mark.parametrize("name", ["", "absent.txt", "a\0b"])  # the folder itself, no such file, no such name
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"^target\.path=.*: cannot be read \(.+\); give a UTF-8 text file$"):
        read(f"{tmp_path}/{name}")


def test_a_wrong_level_or_fraction_names_the_key() -> None:
    with pytest.raises(UserError, match=r"^target\.level=syllable: .* one of byte, character, word$"):
        read(None, "syllable")
    for fraction in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(UserError, match=rf"^target\.held_out={fraction}: "):
            read(None, held_out=fraction)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_what_is_no_file_is_not_read(path: str) -> None:
    with pytest.raises(UserError, match=f"target.path={path}: cannot be read .it is no file.; give a UTF-8 text file"):
        read(path)
