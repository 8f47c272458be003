"""What runs change in folders: snapshots, what differs between two of them, and taking it back.

Everything here blocks, for as long as git takes, and belongs into a thread. The repository of a person is read only:
what is written lies in the store of snapshots, and in files of the folder when something is taken back.
"""
