"""Replaces names of MindSpore, wherever they have been imported to, and puts them back."""

import sys


class Patches:
    """What was replaced, so that it can be put back."""

    def __init__(self):
        self._names = []  # (namespace, name, original, replacement)
        self._kept = set()  # (id of a namespace, name) that had a replacement before
        self._attributes = []  # (owner, name, original)

    def replace(self, replacements):
        """`replacements`: pairs (original, replacement), functions or classes. Every loaded module has the replacement
        from now on under each name that it had the original under, the script among them."""
        wanted = {id(original): (original, replacement) for original, replacement in replacements}
        replacing = {id(replacement) for _, replacement in replacements}
        for namespace, name, value in _names_of_modules():
            if id(value) in replacing:
                self._kept.add((id(namespace), name))
            if id(value) in wanted:
                original, replacement = wanted[id(value)]
                namespace[name] = replacement
                self._names.append((namespace, name, original, replacement))

    def set(self, owner, name, value):
        """An attribute of a class."""
        self._attributes.append((owner, name, vars(owner)[name]))
        setattr(owner, name, value)

    def undo(self):
        """Modules that were loaded meanwhile get the originals too."""
        originals = {id(replacement): original for _, _, original, replacement in reversed(self._names)}
        for namespace, name, original, replacement in self._names:
            if namespace.get(name) is replacement:
                namespace[name] = original
        for namespace, name, value in _names_of_modules():
            if id(value) in originals and (id(namespace), name) not in self._kept:
                namespace[name] = originals[id(value)]
        for owner, name, original in reversed(self._attributes):
            setattr(owner, name, original)
        self._names.clear()
        self._kept.clear()
        self._attributes.clear()


def _names_of_modules():
    for module_name, module in list(sys.modules.items()):
        if module is None or module_name.split(".")[0] == "pipeloom":
            continue
        namespace = getattr(module, "__dict__", None)
        if not isinstance(namespace, dict):
            continue
        for name, value in list(namespace.items()):
            yield namespace, name, value
