"""The worker: claims queued executions, starts their hosts, reads their journals into the database, settles what died.

One process per machine and database. It may know the store and the runners; no screen and no command line.
"""
