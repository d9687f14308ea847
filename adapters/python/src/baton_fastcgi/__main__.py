"""`python -m baton_fastcgi` is the command `baton-fastcgi`."""

import sys

from baton_fastcgi.command import main

sys.exit(main())
