"""The words of the project: none that a colleague would not say aloud."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Words for which there is always a plainer one. Others depend on the sentence.
STIFF = re.compile(
    r"\b(whoever|whomever|whom|somebody|nobody|whosoever|what is to be|(is|are) to be"
    r"|(those|everyone|anyone) who asks?|thereof|therein|hitherto)\b",
    re.IGNORECASE,
)
#: It names the words.
EXCEPTIONS = {"CONTRIBUTING.md"}


def stiff_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a module or a page that have such a word."""
    # Few files have one at all, and finding comments takes long.
    if STIFF.search(path.read_text(encoding="utf-8")):
        yield from ((number, line) for number, line in lines_of(path) if STIFF.search(line))


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every line of a page; of a module those of its comments and texts."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(token.string.splitlines(), token.start[0])


def test_modules_and_pages_are_written_as_people_speak():
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.yaml"), *ROOT.glob("*.md")]
    modules = [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    assert pages
    assert modules
    stiff = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*modules, *pages)
        if path.name not in EXCEPTIONS
        for number, line in stiff_lines(path)
    ]
    assert [] == stiff


def test_words_are_found_in_comments_texts_and_pages(tmp_path: Path):
    module, page = tmp_path / "module.py", tmp_path / "page.md"
    module.write_text('"""For whom.\n\nWhoever."""\nnobody = 1  # somebody\n')
    page.write_text("plain\nIt is to be seen.\n")

    assert [1, 3, 4] == [number for number, _ in stiff_lines(module)]
    assert [2] == [number for number, _ in stiff_lines(page)]
