import numpy as np

from lpcfg_sk._parallel import Spool
from lpcfg_sk.em._training_trees import TrainingTrees


def training_trees(index, weight):
    """Trees of an index as they are: equal ones are not merged."""
    spool = Spool(on_disk=False)
    kept = spool.keep((index.columns(), weight, np.arange(index.n_trees)))
    return TrainingTrees(None, [(kept, index.count(weight))], spool)
