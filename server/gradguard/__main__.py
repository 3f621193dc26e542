"""`python -m gradguard`.

With `-m` Python looks for every module in the current folder first, which may be a stranger's. Nothing of ours is
imported from there: the folder leaves the path before anything else is loaded. What Python itself loads to get here,
this package included, it has looked for there all the same, unless it was started with `-P`; the command `gradguard`
does not look there.
"""

import os
import sys

if __name__ == "__main__":
    try:
        current = os.getcwd()
    except OSError:  # it was removed
        current = ""
    if sys.path[:1] == [current] and not getattr(sys.flags, "safe_path", False):
        # Who stands in the folder of this very package wants this one.
        if os.path.dirname(os.path.dirname(os.path.abspath(__file__))) != current:
            del sys.path[0]

    from gradguard.main import main

    sys.exit(main())
