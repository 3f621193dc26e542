"""Runs gradguard with the Python that executes this file, from the copy that the extension carries.

GRADGUARD_IMPORT_STRATEGY decides which copy wins: `useBundled` puts the extension's packages before those
of the environment, `fromEnvironment` after them. Nothing is installed and nothing is downloaded.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OURS = [os.path.join(HOME, "server"), os.path.join(HOME, "client", "bundled", "libs")]


def main():
    # Not `sys.version_info >= ...` in an annotation or newer syntax: an old Python must get as far as this line.
    if sys.version_info < (3, 10):
        sys.stderr.write("gradguard needs Python 3.10 or newer; %s is %s\n" % (sys.executable, sys.version.split()[0]))
        return 2
    # This file's own folder is no place to import from.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != HERE]
    if os.environ.get("GRADGUARD_IMPORT_STRATEGY") == "fromEnvironment":
        sys.path.extend(OURS)
    else:
        sys.path[:0] = OURS
    from gradguard.cli.main import main as gradguard

    return gradguard(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
