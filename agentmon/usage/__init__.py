"""What agents wrote down of billed answers in files of their own: found, followed and read.

The readers are pure: bytes and a state in, values of the domain out. Only ``sources`` and ``following`` touch files. No
SQL and no prices of single answers belong here.
"""
