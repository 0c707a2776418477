"""What transformers of treebanks have in common."""

from functools import wraps

from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.treebank._sharded import ShardedTreebank
from lpcfg_sk.treebank._validation import check_treebank

__all__ = ["TreebankTransformerMixin", "transforms_shards"]


def transforms_shards(transform):
    """Let a ``transform`` of treebanks take shards: each when it is opened.

    Parameters
    ----------
    transform : callable
        A method ``transform(self, X)`` of a fitted transformer.

    Returns
    -------
    callable
        The method for a :class:`Treebank` or a :class:`ShardedTreebank`.
    """

    @wraps(transform)
    def wrapper(self, X):
        check_is_fitted(self)
        if isinstance(X, ShardedTreebank):
            return X.apply(self)
        return transform(self, X)

    return wrapper


class TreebankTransformerMixin(TransformerMixin, auto_wrap_output_keys=None):
    """A transformer whose X are trees."""

    def fit_transform(self, X, y=None, **fit_params):
        """Fit to trees and transform them.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Training data.
        y : None
            Ignored.
        **fit_params
            Further arguments of ``fit``.

        Returns
        -------
        treebank : Treebank
        """
        # Both fit and transform read X, and an iterator can be read once.
        X = check_treebank(X, estimator=self, allow_empty=True, sharded=True)
        return super().fit_transform(X, y, **fit_params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
