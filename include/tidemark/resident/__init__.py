"""One warm Spark for the machine: a launcher that starts no JVM and imports nothing per task.

    client ──unix socket──> server ──┬── JVM            the one SparkContext (jvm.py)
                                     ├── fork server    a pre-imported Python that only forks (fork_server.py)
                                     │     └── child    one run of an app, with its own gateway to the JVM (child.py)
                                     └── context owner  holds the SparkContext, opens gateways, cancels jobs
                                                        (context_owner.py)

The server does nothing but bookkeeping, the fork server has no threads and no connection to the JVM, so a fork of it is
clean; a child never shares a socket with anybody. Whoever dies takes along what depended on it: the client its child,
the child its Spark jobs, the server everything. Linux only: it rests on SO_PEERCRED, pidfd and PR_SET_PDEATHSIG.
"""
