"""Processes that start with rankcore imported: forks of one that does nothing else.

A test that kills writers, or fills their disk, starts dozens; each would import for a second.
For POSIX only.
"""

import multiprocessing
import os
import sys

IMPORTED = [
    "rankcore.cli.app",  # where its packages are installed
    "rankcore.datasets",
    "rankcore.exporters.exporting",
    "rankcore.io.model_file",
    "rankcore.ordinal.prank",
    "rankcore.ordinal.voted",
    "rankcore.preference",
]


class Child:
    """A process that runs code with these arguments in `sys.argv`.

    Its standard output and error are `output`, a stream of bytes.
    """

    def __init__(self, code, *args):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTED)
        read, write = context.Pipe(duplex=False)
        self.process = context.Process(target=_run, args=(code, [*map(str, args)], write))
        self.process.start()
        write.close()
        self.output = os.fdopen(os.dup(read.fileno()), "rb")
        read.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.wait()
        self.output.close()

    def wait(self, timeout=120):
        """Return the status with which the process ended; negative if by a signal."""
        self.process.join(timeout)
        assert self.process.exitcode is not None, "the process goes on"
        return self.process.exitcode


def run(code, *args):
    """Return the status and the output of a process."""
    with Child(code, *args) as child:
        output = child.output.read()
        return child.wait(), output


def _run(code, args, write):
    os.dup2(write.fileno(), 1)
    os.dup2(write.fileno(), 2)
    sys.argv = ["-c", *args]
    exec(compile(code, "<child>", "exec"), {"__name__": "__main__"})
