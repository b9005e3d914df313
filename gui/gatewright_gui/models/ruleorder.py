"""How one order of rules became another: which rows came, went or moved. It knows no table."""

from gatewright.policy.document import PermissionRule


def extra(long: tuple[PermissionRule, ...], short: tuple[PermissionRule, ...]) -> list[int]:
    """Where the long one has rules that the short one has not; at the first difference, where it is not that simple."""
    found: list[int] = []
    at = 0
    for row, rule in enumerate(long):
        if at < len(short) and short[at] == rule and len(long) - row - 1 >= len(short) - at - 1:
            at += 1
        else:
            found.append(row)
    if at == len(short) and len(found) == len(long) - len(short):
        return found
    first = next((row for row in range(len(short)) if long[row] != short[row]), len(short))
    return list(range(first, first + len(long) - len(short)))


def runs(rows: list[int]) -> list[tuple[int, int]]:
    """First and last of each run of rows."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and found[-1][1] == row - 1:
            found[-1] = (found[-1][0], row)
        else:
            found.append((row, row))
    return found


def places(old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> list[int] | None:
    """Where each of the old rules stands now; None where they are not the same rules."""
    waiting: dict[PermissionRule, list[int]] = {}
    for row in range(len(new) - 1, -1, -1):
        waiting.setdefault(new[row], []).append(row)
    found: list[int] = []
    for rule in old:
        if not waiting.get(rule):
            return None
        found.append(waiting[rule].pop())
    return found


def single_move(old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> tuple[int, int] | None:
    """`(from, to)` when one row moved and nothing else changed."""
    if len(old) != len(new):
        return None
    differ = [at for at in range(len(old)) if old[at] != new[at]]
    if len(differ) < 2:
        return None
    first, last = differ[0], differ[-1]
    if old[first] == new[last] and old[first + 1 : last + 1] == new[first:last]:
        return first, last
    if old[last] == new[first] and old[first:last] == new[first + 1 : last + 1]:
        return last, first
    return None
