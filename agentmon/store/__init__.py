"""The only room that knows SQL: tables, migrations, repositories and the database file; no terminal library enters.

Importing the package imports nothing: the first frame reads the board before SQLAlchemy is loaded.
"""
