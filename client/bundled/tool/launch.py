"""Runs gradguard with the Python that executes this file, from the copy that the extension carries.

GRADGUARD_IMPORT_STRATEGY decides which copy wins: `useBundled` puts the extension's packages before those
of the environment, `fromEnvironment` after them. Nothing is installed and nothing is downloaded.
"""

import glob
import importlib.machinery
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUNDLED = os.path.join(HOME, "client", "bundled")


def ours():
    """Folders of the extension's packages. The compiled one only for a Python it was compiled for."""
    folders = [os.path.join(HOME, "server"), os.path.join(BUNDLED, "libs")]
    compiled = os.path.join(BUNDLED, "compiled")
    suffixes = [suffix for suffix in importlib.machinery.EXTENSION_SUFFIXES if suffix not in (".so", ".pyd")]
    if any(glob.glob(os.path.join(glob.escape(compiled), "*", "native" + suffix)) for suffix in suffixes):
        folders.append(compiled)
    return folders


def main():
    # An old Python must get as far as this line: no newer syntax in this file.
    if sys.version_info < (3, 10):  # noqa: UP036
        sys.stderr.write(
            "gradguard needs Python 3.10 or newer; %s is %s\n" % (sys.executable, sys.version.split()[0])  # noqa: UP031
        )
        return 2
    # This file's own folder is no place to import from.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != HERE]
    if os.environ.get("GRADGUARD_IMPORT_STRATEGY") == "fromEnvironment":
        sys.path.extend(ours())
    else:
        sys.path[:0] = ours()
    from gradguard.main import main as gradguard

    return gradguard(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
