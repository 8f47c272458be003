"""The schema's revisions, oldest first; this file imports nothing, because the first frame reads it."""

REVISIONS = (
    *("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010"),
    *("0011", "0012", "0013", "0014", "0015", "0016", "0017", "0018", "0019", "0020"),
)
"""Every revision that a release of agentmon has made; a database that names another one is from a later release."""

HEAD_REVISION = REVISIONS[-1]
"""The revision that this release reads and writes."""
