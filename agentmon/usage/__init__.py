"""What agents wrote down of billed answers in files of their own: found, followed and read.

The readers are pure: bytes and a state in, values of the domain out. Only ``sources``, ``following`` and what reads the
database and the folders of opencode touch files. No SQL belongs here but that of foreign databases, and no prices of
single answers.
"""
