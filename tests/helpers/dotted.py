"""Names with dots, as pages and scripts have them."""

from importlib import import_module


def exists(name):
    """Whether a dotted name leads to a module, or to something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not (hasattr(found, part) or part in getattr(found, "__annotations__", ())):
                return False
            found = getattr(found, part, None)
        return True
    return False
