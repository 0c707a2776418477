"""Run ``python -m lpcfg_sk``."""

import sys

from lpcfg_sk._cli import main

if __name__ == "__main__":
    sys.exit(main())
