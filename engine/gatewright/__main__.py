"""The command line as ``python -m gatewright``, for where no console script was installed."""

from gatewright.cli.main import script

if __name__ == "__main__":
    script()
