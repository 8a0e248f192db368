"""First look at a formula: its characters, words, brackets and equation sign, before anything is made of it.

What passes here can be handed to Python's parser without harm: no names that begin with an underscore, no dots, no
quotes, no colons, and limits on length and nesting.
"""

from __future__ import annotations

import keyword
import re
import unicodedata

from pibls.text.positions import Text

LONGEST = 20_000
_MOST_WORDS = 2_000
_DEEPEST = 40
_MOST_DIGITS = 60

_WORD = re.compile(
    r"(?P<space>[ \t\n]+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z]\w*)"
    r"|(?P<sign>\*\*|==|!=|<=|>=|[-+*/()\[\],=<>])",
    re.ASCII,
)
_PAIRS = {")": "(", "]": "["}
_LOGIC = {"and", "or", "not"}
_REMEDIES = {
    "^": "Write a power as **, as in x**2.",
    "'": "Write derivatives as u_x and u_xx.",
    "&": "Write 'and' between two comparisons.",
    "|": "Write 'or' between two comparisons.",
    "~": "Write 'not' before a comparison.",
    "!": "Write 'not' before a comparison, or != between two numbers.",
    "%": "There is no remainder in formulas.",
    ".": "A point is allowed inside numbers only, as in 0.5.",
    ";": "Write one equation per text.",
    "#": "Comments go into the file, outside the text of a formula.",
    "{": "Write derivatives as u_xx or diff(u, x, 2), without braces.",
    "_": "Names begin with a letter.",
    "−": "Write the minus sign as -.",
    "–": "Write the minus sign as -.",
    "×": "Write a product as *.",
    "·": "Write a product as *.",
    "÷": "Write a quotient as /.",
    "π": "Write pi.",
    "²": "Write **2.",
    "³": "Write **3.",
    "√": "Write sqrt(...).",
    "≤": "Write <=.",
    "≥": "Write >=.",
    "≠": "Write !=.",
    "∂": "Write derivatives as u_xx or diff(u, x, 2).",
    "Δ": "Write laplacian(u).",
    "∇": "Write grad(u), div(v) or laplacian(u).",
}


def scan(piece: Text) -> tuple[tuple[int, int], ...]:
    """Check the words of a formula; return where the sides of its equation sign begin and end, or all of it.

    >>> scan(Text.plain("u_xx = 1"))
    ((0, 5), (6, 8))
    """
    text = piece.text
    if len(text) > LONGEST:
        raise piece.error(f"The text is {len(text)} characters long; {LONGEST} are allowed. Split it up.", LONGEST)
    words = _words(piece)
    if not words:
        raise piece.error("The text is empty; write a number, or a formula such as u_xx + u_yy = 0.")
    if len(words) > _MOST_WORDS:
        start = words[_MOST_WORDS].start()
        raise piece.error(f"The formula has {len(words)} words; {_MOST_WORDS} are allowed. Split it up.", start)
    signs = _brackets(piece, words)
    if not signs:
        return ((0, len(text)),)
    if len(signs) > 1:
        raise piece.error("There is a second equation sign; write one equation per text.", signs[1])
    spans = ((0, signs[0]), (signs[0] + 1, len(text)))
    for start, stop in spans:
        if not text[start:stop].strip():
            raise piece.error("A side of the equation is empty; write 0 if it is zero.", signs[0])
    return spans


def _words(piece: Text) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    position = 0
    while position < len(piece.text):
        word = _WORD.match(piece.text, position)
        if word is None:
            raise _strange(piece, position)
        position = word.end()
        if word.lastgroup == "space":
            continue
        _check(piece, word)
        words.append(word)
    return words


def _check(piece: Text, word: re.Match[str]) -> None:
    name, start, stop = word.group(), word.start(), word.end()
    if word.lastgroup == "number":
        if len(name) > _MOST_DIGITS:
            raise piece.error(f"The number has more than {_MOST_DIGITS} digits; write it as in 1.5e100.", start, stop)
        if stop < len(piece.text) and re.match(r"\w", piece.text[stop], re.ASCII):
            following = re.match(r"[A-Za-z]\w*", piece.text[stop:], re.ASCII)
            remedy = (
                f" Did you mean '{name}*{following.group()[:40]}'?" if following else " Write its digits without _."
            )
            raise piece.error(f"The number runs into a name.{remedy}", start, stop)
    elif word.lastgroup == "name" and keyword.iskeyword(name) and name not in _LOGIC:
        rule = ": they are made of numbers, names, operators and functions."
        rule = "; write where(condition, value, otherwise)." if name in {"if", "else"} else rule
        raise piece.error(f"There is no {name!r} in formulas{rule}", start, stop)


def _strange(piece: Text, position: int) -> Exception:
    character = piece.text[position]
    remedy = _REMEDIES.get(character, "Formulas are made of numbers, names, operators, brackets and commas.")
    if character.isprintable() and ord(character) < 128:
        what = f"The character {character} is not part of formulas."
    else:
        title = unicodedata.name(character, "a control character")
        what = f"The character U+{ord(character):04X} ({title}) is not part of formulas, which are plain ASCII."
    return piece.error(f"{what} {remedy}", position)


def _brackets(piece: Text, words: list[re.Match[str]]) -> list[int]:
    """Check that brackets match, and return the places of the equation signs outside them."""
    opened: list[re.Match[str]] = []
    signs = []
    for word in words:
        symbol, start = word.group(), word.start()
        if symbol in _PAIRS.values():
            opened.append(word)
            if len(opened) > _DEEPEST:
                raise piece.error(f"Brackets are nested more than {_DEEPEST} deep; split the formula up.", start)
        elif symbol in _PAIRS:
            if not opened or opened[-1].group() != _PAIRS[symbol]:
                raise piece.error(f"This {symbol} closes nothing; check the brackets.", start)
            opened.pop()
        elif symbol == "=":
            if opened:
                raise piece.error("An equation sign inside brackets means nothing here; compare with == or <.", start)
            signs.append(start)
    if opened:
        raise piece.error(f"This {opened[-1].group()} is never closed; check the brackets.", opened[-1].start())
    return signs
