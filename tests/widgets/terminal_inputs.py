"""What terminals send that is no key, and what they send at all, broken in every way; each from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

REPLIES: Final = (
    b"\x1b]11;rgb:ffff/ffff/ffff\x07",
    b"\x1b]10;rgb:0000/0000/0000\x1b\\",
    b"\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    b"\x1bP>|xterm(390)\x1b\\",
    b"\x1bP1+r544e=787465726d\x1b\\",
    b"\x1bP0$r\x1b\\",
    b"\x1bP!|7E565445\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1b[?62;4;22c",
    b"\x1b[>1;10;0c",
    b"\x1b[=0;1c",
    b"\x1b[0n",
    b"\x1b[?997;1n",
    b"\x1b[12;40R",
    b"\x1b[1;2R",
    b"\x1b[?1;1R",
    b"\x1b[?2026;2$y",
    b"\x1b[?2048;1$y",
    b"\x1b[4;1$y",
    b"\x1b[?31u",
    b"\x1b[8;30;100t",
    b"\x1b[4;600;800t",
    b"\x1b[48;30;100;600;800t",
    b"\x1b[48;0;0;0;0t",
    b"\x1b[48;99999;99999;1;1t",
    b"\x1b]lsome title\x1b\\",
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b[M !!",
    b"\x1b[M\xe8\xe8\xff",
    b"\x1b[M#\x00\x9b",
    b"\x1b[32;500;600M",
    b"\x1b[<0;99999;99999M",
    b"\x1b[<35;500;1m",
    b"\x1b[<0;-5;3M",
    b"\x1b[<128;5;5M",
    b"\x1b[<0;99999999999999999999;1M",
    b"\x1b[1114112u",
    b"\x1b[55296;1u",
    b"\x1b[97;1:3u",
    b"\x1b[97;;1114112u",
    b"\x1b[97;99999u",
    b"\x1b[57999u",
    b"\x1b[1;1:3A",
    b"\x1b[112~",
    b"\x1b[5;6A",
    b"\x1b[27;5;9999999~",
    b"\x1b[201~",
    b"\x9b0n",
    b"\xc2\x9b?62c",
    b"\x9d11;rgb:0/0/0\x9c",
    b"\x90>|x\x1b\\",
    b"\xff\xfe",
    b"\xe9\x1b[0n",
    b"\xc3\x1b[0n",
    b"\xed\xa0\x80",
)
"""Each is whole and no key; by itself none is even a click on something."""
KEYS: Final = (
    b"j",
    "é".encode(),
    "한".encode(),
    b"\r",
    b"\x1b",
    b"\x1bx",
    b"\x1b[A",
    b"\x1bOP",
    b"\x1b[3~",
    b"\x1b[1;5C",
    b"\x1b[97;5u",
    b"\x1b[97;;97u",
    b"\x1b[27;5;97~",
    b"\x1b[[A",
    b"\x1b[<0;5;6M",
    b"\x1b[<35;7;8M",
    b"\x1b[<64;7;8M",
    b"\x1b[200~pasted\x1b[201~",
)
_WHOLE: Final = b"\x1b[0n"
"""Ends whatever was cut off before it."""
_NO_KEY_ENDS: Final = b"cnqty{|}"
_STRINGS: Final = (b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX")


def no_key(random: Random) -> bytes:
    """Return something that is no key, whole or cut off, and after which the next input is read for itself."""
    match random.randrange(5):
        case 0:
            return random.choice(REPLIES)
        case 1:
            cut = random.choice([reply for reply in REPLIES if reply[:1] == b"\x1b"])
            return cut[: random.randrange(3, len(cut) + 1)] + _WHOLE
        case 2:
            numbers = b";".join(
                str(random.randrange(10 ** random.randrange(1, 40))).encode() for _ in range(random.randrange(6))
            )
            return b"\x1b[" + random.choice((b"?", b">", b"=")) + numbers + bytes((random.choice(_NO_KEY_ENDS),))
        case 3:
            body = bytes(random.randrange(0x20, 0x7F) for _ in range(random.randrange(40)))
            return random.choice(_STRINGS) + body + random.choice((b"\x07", b"\x1b\\"))
        case _:
            # Beginnings of characters without an end, or ends without a beginning.
            first, behind = random.choice(((0xA0, 0xC0), (0xC0, 0x100)))
            return bytes(random.randrange(first, behind) for _ in range(random.randrange(1, 6))) + _WHOLE


def anything(random: Random) -> bytes:
    """Return random bytes, or something known with bytes of it changed, doubled, lost or cut off."""
    if random.random() < 0.2:
        return random.randbytes(random.randrange(1, 16))
    mutated = bytearray(random.choice(random.choice((REPLIES, KEYS))))
    for _ in range(random.randrange(4)):
        place = random.randrange(len(mutated) + 1)
        match random.randrange(4):
            case 0:
                mutated[place : place + 1] = random.randbytes(1)
            case 1:
                mutated[place:place] = random.choice((b"\x1b", b"[", b";", b":", b"9999999", b"\x9b", b"\x00", b"<"))
            case 2:
                del mutated[place : place + random.randrange(1, 4)]
            case _:
                mutated[place:place] = mutated[: random.randrange(8)]
    return bytes(mutated)
