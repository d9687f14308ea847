"""Serves WSGI and ASGI applications over FastCGI; under Baton they answer on the client's own socket.

    from baton_fastcgi import Settings, serve_wsgi
    serve_wsgi("shop:app", bind="unix:/run/shop.sock", settings=Settings(processes=4))

How the files belong together, from the wire to the application:

    records, offer        bytes of FastCGI and of Baton's records, without I/O
    connection, request   one FastCGI connection, one request at a time
    body, lent            a request's body: bytes, or where the server has it
    waiting               the one difference between threads and event loops
    head, files           what an application says, checked
    response              chooses the outlet: outlet (plain), shm (shared memory), passfd (the client's socket)
    wsgi, asgi, lifespan  what applications see
    threaded, looped      one process that serves
    master, control       the processes, and how they are told to stop
"""

from baton_fastcgi.files import File
from baton_fastcgi.serving import serve_asgi, serve_wsgi
from baton_fastcgi.settings import Settings, SettingsError
from baton_fastcgi.version import __version__

__all__ = ["File", "Settings", "SettingsError", "__version__", "serve_asgi", "serve_wsgi"]
