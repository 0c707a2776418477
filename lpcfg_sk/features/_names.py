from collections.abc import Sequence

import numpy as np


class FeatureNames(Sequence):
    """Readable names of the columns of a block, each made when it is asked for.

    Parameters
    ----------
    prefixes : list of str
        What the names of each template's features begin with.
    templates : list
        Named templates, or None for callables, whose keys are names.
    vocabularies : list
        Keys of each template's features.
    productions : Productions
        The ids that keys are made of.
    """

    def __init__(self, prefixes, templates, vocabularies, productions):
        self._prefixes = prefixes
        self._templates = templates
        self._vocabularies = vocabularies
        self._productions = productions
        self._ends = np.cumsum([len(keys) for keys in vocabularies])

    def __len__(self):
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, column):
        if isinstance(column, slice):
            return [self[i] for i in range(*column.indices(len(self)))]
        if not -len(self) <= column < len(self):
            raise IndexError(f"column {column} of {len(self)} features")
        column %= len(self)
        part = int(np.searchsorted(self._ends, column, side="right"))
        keys, template = self._vocabularies[part], self._templates[part]
        key = keys[column - int(self._ends[part]) + len(keys)]
        name = key if template is None else template.name(key, self._productions)
        return f"{self._prefixes[part]}{name}"
