"""`python -m gradguard`."""

import sys

from gradguard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
