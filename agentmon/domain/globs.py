"""Globs of rules, matched in one pass: the work grows with the length of the text, whatever glob and text are."""

from __future__ import annotations


class Glob:
    r"""A pattern: ``*`` and ``?`` stay inside one folder of a path, ``**`` crosses folders, ``\`` makes a sign plain.

    Each bit of a number is a place in the pattern; all places that may have been reached move at once.
    """

    __slots__ = ("_crossing", "_end", "_folders", "_is_path", "_prefix", "_signs", "_single", "_staying")

    def __init__(self, glob: str, *, is_path: bool) -> None:
        self._is_path = is_path
        self._signs: dict[str, int] = {}
        self._single = 0
        """Places that one sign leaves: ``?``."""
        self._staying = 0
        """Places where any number of signs of one folder may stand."""
        self._crossing = 0
        """Places where any number of any signs may stand."""
        self._folders = 0
        """Places in front of any number of whole folders, each followed by the place inside of such a folder."""
        self._prefix = glob[: min((glob.find(sign) for sign in "*?\\" if sign in glob), default=len(glob))]
        bit, position = 1, 0
        while position < len(glob):
            sign, width = glob[position], 1
            if is_path and glob.startswith("**/", position):
                self._folders |= bit
                bit, width = bit << 1, 3
            elif is_path and glob.startswith("**", position):
                self._crossing |= bit
                width = 2
            elif sign == "*" and is_path:
                self._staying |= bit
            elif sign == "*":
                self._crossing |= bit
            elif sign == "?":
                self._single |= bit
            else:
                if sign == "\\" and position + 1 < len(glob):
                    sign, width = glob[position + 1], 2
                self._signs[sign] = self._signs.get(sign, 0) | bit
            bit, position = bit << 1, position + width
        self._end = bit

    def fits(self, text: str) -> bool:
        """Return whether the pattern says all of the text."""
        if not text.startswith(self._prefix):
            return False
        places = self._with_skipped(1)
        for sign in text:
            stay, leave = places & self._crossing, places & self._signs.get(sign, 0)
            if not self._is_path or sign != "/":
                stay |= places & (self._staying | self._folders << 1)
                leave |= places & (self._single | self._folders)
            else:
                stay |= places >> 1 & self._folders
            places = self._with_skipped(stay | leave << 1)
            if not places:
                return False
        return bool(places & self._end)

    def _with_skipped(self, places: int) -> int:
        """Return the places, and those behind what may stand for nothing."""
        while True:
            more = places | (places & (self._staying | self._crossing)) << 1 | (places & self._folders) << 2
            if more == places:
                return places
            places = more
