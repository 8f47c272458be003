"""The command line: parse, call a service, print as text or JSON, end with a code that tells how it went."""
