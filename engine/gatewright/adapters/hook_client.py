"""The program that a coding agent starts as its hook, `python -I -S FILE HOST --policy P ...`: the gate's client.

Python compiles the program that it starts anew each time, which for `hook_exchange` would take half as long as its own
start. So the client itself is only this: it takes `hook_exchange` in the compiled form beside it, which Python makes
again if it is missing or older. What fails is a denial; the entry in the host's file has the form of it.
"""

import posix
import sys

if __name__ == "__main__":
    try:
        name = "hook_exchange"
        module: dict[str, object] = {"__name__": name}
        exec(type(__loader__)(name, f"{__file__[:-9]}exchange.py").get_code(name), module)
        code: int = module["main"](sys.argv[1:])  # pyright: ignore
    except BaseException as error:  # noqa: BLE001 a hook that fails lets the call pass in most hosts
        reason = f"gatewright: not allowed, because its client cannot be loaded: {error}\n"
        posix.write(2, reason.encode("utf-8", "replace"))
        code = 2
    posix._exit(code)  # pyright: ignore  # nothing has to be put in order, and that saves a tenth of the time
