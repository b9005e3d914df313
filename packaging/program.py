"""Where the self-contained program starts: the command line, or the worker process of its window."""

import os
import sys

# The start of the bundle points it at the bundle's libraries; no program that it starts in turn is meant to load those.
own = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if own is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = own
# What it starts may be this program again, as the worker of its window is: that looks for the bundle's libraries anew.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"

if sys.argv[1:] == ["--worker"]:
    from gatewright_gui.session.worker import main

    main()
else:
    from gatewright.cli.main import script

    script()
